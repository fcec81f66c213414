//! What surrounds the command line: experiment files, variables of the environment, messages, completions, manual.

use assert_cmd::Command;
use clap::CommandFactory;
use leakybins::cli::Cli;
use predicates::str::{contains, is_empty};
use serde_json::Value;
use std::fs;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_leakybins");
/// A run of a few milliseconds on the CPU.
const TINY: &str = "run leaky --backend cpu --n 8 --lambda 0.5 --replicas 3 --rounds 20 --burn-in 5 --every 3 --seed 7";

fn leakybins(arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split_whitespace());
    command
}

/// Standard output of a command that succeeds.
fn output(command: &mut Command) -> String {
    let output = command.assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("results are UTF-8")
}

/// The value without what may differ between two runs, and without `fields`.
fn result(json: &str) -> Value {
    fn forget(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("elapsed_s");
                fields.values_mut().for_each(forget);
            }
            Value::Array(values) => values.iter_mut().for_each(forget),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(json).expect("valid JSON");
    forget(&mut value);
    value
}

/// A folder with the file `x.toml`.
fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    fs::write(folder.path().join("x.toml"), text).expect("a file");
    folder
}

/// The objects on standard error.
fn objects(command: &mut Command) -> Vec<Value> {
    let stderr = String::from_utf8(command.assert().get_output().stderr.clone()).expect("UTF-8");
    stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn a_printed_file_gives_the_same_result() {
    for command in [
        TINY,
        "run leaky --n 2^4 --d 3 --lambda 1-2^-3 --replicas 5 --rounds 60 --measure pre --band simultaneous",
        "run leaky --n 8 --lambda 0.5 --rounds 60 --burn-in auto --replicas 40 --seed 18446744073709551615",
        "run leaky --n 8 --lambda 0.5 --rounds 40 --rel-err 0.2 --backend reference --seed 3",
        "sweep leaky --lambda 1-2^-(1..3) --n 8,16 --balls 1e4 --replicas 4 --at 2,3",
        "recover leaky --n 8 --lambda 0.5 --start one-bin:30 --replicas 4",
        "cover repeated --n 8 --queue random --replicas 4",
        "theory leaky --lambda 0.50 --d 1 --start each:3 --rounds 20",
    ] {
        let printed = output(&mut leakybins(&format!("{command} --format json --print-spec")));
        let folder = folder(&printed);
        let again = output(leakybins("--spec x.toml --print-spec").current_dir(folder.path()));
        assert_eq!(again, printed, "{command}");
        let by_file = output(leakybins("--spec x.toml").current_dir(folder.path()));
        let seed = printed.lines().find_map(|line| line.strip_prefix("seed = "));
        let typed = if command.contains("--seed") || seed.is_none() {
            command.to_owned()
        } else {
            format!("{command} --seed {}", seed.unwrap_or_default())
        };
        let by_flags = output(&mut leakybins(&format!("{typed} --format json")));
        assert_eq!(result(&by_file), result(&by_flags), "{command}");
    }
}

#[test]
fn defaults_that_follow_from_others_are_printed() {
    let printed = output(&mut leakybins("run leaky --rounds 300 --print-spec"));
    for line in ["command = \"run\"", "n = 1024", "burn-in = 150", "every = 10", "replicas = 256", "quiet = false"] {
        assert!(printed.lines().any(|other| other == line), "{line} is missing in\n{printed}");
    }
    assert!(printed.lines().any(|line| line.starts_with("seed = ")), "{printed}");
    assert!(printed.contains("# Without a value: rel-err, at, "), "{printed}");
    let way = output(&mut leakybins("recover leaky --start one-bin:100 --n 16 --print-spec"));
    for key in ["level", "rounds"] {
        assert!(way.lines().any(|line| line.starts_with(&format!("{key} = "))), "{key} is missing in\n{way}");
    }
    let refused = leakybins("run leaky --rounds 10 --burn-in 10 --print-spec").assert().code(2).stdout("");
    refused.stderr(contains("burn-in = 10 leaves nothing of 10 rounds"));
}

#[test]
fn a_printed_file_goes_on_with_a_journal_and_serves_every_shard() {
    let folder = folder("");
    let run = |arguments: &str| output(leakybins(arguments).current_dir(folder.path()));
    let few = "run leaky --backend cpu --n 8 --lambda 0.5 --replicas 100 --rounds 20 --format json";
    run(&format!("{few} --seed 7 --out all.jsonl"));
    let printed = run(&format!("{few} --out all.jsonl --print-spec"));
    assert!(printed.contains("\nseed = 7\n") && printed.contains("\nout = \"all.jsonl\"\n"), "{printed}");
    fs::write(folder.path().join("x.toml"), run(&format!("{few} --seed 7 --print-spec"))).expect("a file");
    for part in ["1/2", "2/2"] {
        run(&format!("--spec x.toml --shard {part} --out {}.jsonl", part.replace('/', "-")));
    }
    run("merge 1-2.jsonl 2-2.jsonl -o merged.jsonl");
    let report = |name: &str| run(&format!("report {name} --format json"));
    assert_eq!(result(&report("merged.jsonl")), result(&report("all.jsonl")));
}

#[test]
fn flags_beat_variables_beat_the_file_beats_defaults() {
    let folder = folder("command = 'run'\nprocess = 'leaky'\nn = 5\nlambda = 0.5\nreplicas = 2\nburn_in = '2^1'\n");
    let value = |command: &mut Command, key: &str| {
        let printed = output(command.arg("--print-spec").current_dir(folder.path()));
        let prefix = format!("{key} = ");
        let value = printed.lines().find_map(|line| line.strip_prefix(&prefix));
        value.unwrap_or_else(|| panic!("no {key} in\n{printed}")).to_owned()
    };
    assert_eq!(value(&mut leakybins("--spec x.toml"), "n"), "5");
    assert_eq!(value(&mut leakybins("--spec x.toml"), "burn-in"), "\"2^1\"");
    assert_eq!(value(&mut leakybins("--spec x.toml"), "d"), "2");
    assert_eq!(value(leakybins("").env("LEAKYBINS_SPEC", "x.toml"), "n"), "5");
    assert_eq!(value(leakybins("--spec x.toml").env("LEAKYBINS_N", "6"), "n"), "6");
    assert_eq!(value(leakybins("--spec x.toml").env("LEAKYBINS_BURN_IN", "9"), "burn-in"), "9");
    assert_eq!(value(leakybins("--spec x.toml").env("LEAKYBINS_QUIET", "1"), "quiet"), "true");
    assert_eq!(value(leakybins("run leaky").env("LEAKYBINS_N", "6"), "n"), "6");
    for line in ["--spec x.toml --n 7", "--n 7 --spec=x.toml", "run leaky --n 7 --spec x.toml"] {
        assert_eq!(value(leakybins(line).env("LEAKYBINS_N", "6"), "n"), "7", "{line}");
        assert_eq!(value(leakybins(line).env("LEAKYBINS_N", "6"), "lambda"), "0.5", "{line}");
    }
    for line in ["run --spec x.toml", "--spec x.toml run", "run --spec x.toml leaky", "run --spec x.toml --d 2"] {
        assert_eq!(value(&mut leakybins(line), "replicas"), "2", "{line}");
    }
}

#[test]
fn grids_may_be_lists() {
    let folder = folder("n = ['2^4', 32]\nlambda = [0.5, '1-2^-3']\nbackend = 'cpu'\n");
    let listed = output(leakybins("sweep leaky --spec x.toml --dry-run").current_dir(folder.path()));
    let typed = output(&mut leakybins("sweep leaky --n 16,32 --lambda 0.5,0.875 --dry-run"));
    assert_eq!(listed, typed);
}

#[test]
fn a_bad_file_is_refused_with_key_and_reason() {
    for (text, message) in [
        ("lamda = 0.5", "x.toml: lamda is no flag of run leaky; the keys are allow-software, arrivals, at, backend"),
        ("lamda = 0.5", "command, "),
        ("[sampling]\nn = 4", "x.toml: sampling is no flag of run leaky"),
        ("spec = 'y.toml'", "x.toml: spec is no flag"),
        ("help = true", "x.toml: help is no flag"),
        ("n = true", "x.toml: n: this is true or false; write a number or a text"),
        ("n = 1979-05-27", "x.toml: n: this is a date"),
        ("n = [[1]]", "x.toml: n: this is a list"),
        ("n = { a = 1 }", "x.toml: n: this is a table"),
        ("n = 1.5", "x.toml: n: invalid value '1.5' for '--n <N>': '1.5' is not a whole number"),
        ("n = -1", "x.toml: n: invalid value '-1'"),
        ("n = ''", "x.toml: n: "),
        ("n = [1, 2]", "x.toml: n: invalid value '1,2'"),
        ("seed = 1e300", "x.toml: seed: invalid value '1e300'"),
        ("lambda = 'lots'", "'lots' is not a rate; write a number such as"),
        ("backend = 'tpu'", "x.toml: backend: invalid value 'tpu'"),
        ("backend = 'tpu'", "possible values: auto, gpu, all, cpu, reference"),
        ("quiet = 'yes'", "x.toml: quiet: this is a text; write true or false"),
        ("threads = 0", "x.toml: threads: invalid value '0'"),
        ("output = '-'", "x.toml: output: "),
        ("burn_in = 1\nburn-in = 2", "with - and with _; leave one out"),
        ("n = 1\nn = 2", "this is not TOML"),
        ("n = 2^20", "this is not TOML; write lines such as lambda = 0.95\nTOML parse error at line 1"),
        ("command = 3", "x.toml: command is a number; write a text such as command = \"..\""),
        ("command = 'sweep'", "it is for the command sweep, and the command line is for run"),
        ("process = 'sieve'", "it is for the process sieve, and the command line is for leaky"),
        // Refused by the run, not by the flag.
        ("lambda = nan", "lambda = NaN is not allowed"),
        ("lambda = -0.5", "lambda = -0.5 is not allowed"),
        ("d = 0", "d = 0 is not allowed"),
    ] {
        let folder = folder(text);
        let mut command = leakybins("run leaky --spec x.toml");
        command.current_dir(folder.path()).assert().code(2).stdout("").stderr(contains(message));
    }
    // Also a value that a flag replaces.
    let folder = folder("n = 'many'");
    let mut command = leakybins("run leaky --spec x.toml --n 4");
    command.current_dir(folder.path()).assert().code(2).stderr(contains("x.toml: n: invalid value 'many'"));
}

#[test]
fn a_file_alone_must_say_what_it_is_for() {
    for (text, message) in [
        ("n = 4", "x.toml: command is missing, here and on the command line; add command = \"..\", one of run, sweep"),
        (
            "command = 'run'",
            "x.toml: process is missing, here and on the command line; add process = \"..\", one of leaky",
        ),
        ("command = 'walk'", "x.toml: command = \"walk\" is unknown; use one of run, sweep"),
        ("command = '--help'", "is unknown; use one of"),
        ("command = 'run'\nprocess = 'sieve'", "process = \"sieve\" is unknown; use one of leaky"),
        ("command = 'devices'\nprocess = 'leaky'", "it is for the process leaky, and the command line is for none"),
    ] {
        let folder = folder(text);
        let mut command = leakybins("--spec x.toml");
        command.current_dir(folder.path()).assert().code(2).stdout("").stderr(contains(message));
    }
    let folder = folder("command = 'sweep'\nprocess = 'leaky'");
    let mut command = leakybins("run --spec x.toml");
    command.current_dir(folder.path()).assert().code(2).stderr(contains("it is for the command sweep"));
}

#[test]
fn files_that_cannot_be_read_are_refused() {
    let folder = folder(&"# a long comment\n".repeat(5000));
    fs::write(folder.path().join("latin1.toml"), b"start = '\xe9'").expect("a file");
    for (path, message) in [
        ("x.toml", "x.toml is longer than 64 KiB"),
        ("nowhere.toml", "nowhere.toml cannot be read ("),
        (".", ". cannot be read ("),
        ("latin1.toml", "latin1.toml: byte 10 is not UTF-8"),
        #[cfg(unix)]
        ("/dev/zero", "/dev/zero is longer than 64 KiB"),
    ] {
        let mut command = leakybins("run leaky --spec");
        command.arg(path).current_dir(folder.path()).assert().code(2).stdout("").stderr(contains(message));
    }
    leakybins("run leaky --spec -").assert().code(2).stderr(contains("cannot be read ("));
}

#[test]
fn bad_variables_are_refused_by_name() {
    for (name, value, message) in [
        ("LEAKYBINS_N", "lots", "the variable LEAKYBINS_N: invalid value 'lots' for '--n <N>'"),
        ("LEAKYBINS_FORMAT", "xml", "the variable LEAKYBINS_FORMAT: invalid value 'xml'"),
        ("LEAKYBINS_QUIET", "perhaps", "the variable LEAKYBINS_QUIET: "),
        ("LEAKYBINS_N", "", "the variable LEAKYBINS_N: "),
    ] {
        leakybins("run leaky --seed 1").env(name, value).assert().code(2).stdout("").stderr(contains(message));
    }
    let warning = "warning: the variable LEAKYBINS_LAMDA stands for no flag of any command; it has no effect\n";
    leakybins(&format!("{TINY} --quiet")).env("LEAKYBINS_LAMDA", "1").assert().success().stderr(contains(warning));
}

#[test]
fn levels_choose_what_is_said() {
    let run = "run leaky --backend cpu --n 8 --lambda 1 --replicas 64 --rounds 9 --burn-in 0 --max-hits 1 --at 2";
    let said = |level: &str| {
        let output = leakybins(&format!("{run} --log {level}")).assert().success().get_output().stderr.clone();
        String::from_utf8(output).expect("UTF-8")
    };
    assert_eq!(said("error"), "");
    assert!(said("warn").lines().all(|line| line.starts_with("warning: ")) && said("warn").contains("lambda = 1"));
    let info = said("info");
    assert!(info.contains("seed: ") && info.contains("backend: cpu") && !info.contains("debug: "), "{info}");
    let debug = said("debug");
    let lines = ["debug: replicas 0 to 31 begun", "debug: replicas 0 to 31 finished in ", " balls/s\n"];
    for text in lines.into_iter().chain(["debug: looked at the rules after 32 replicas; met: max-hits\n"]) {
        assert!(debug.contains(text), "{text} is missing in\n{debug}");
    }
    leakybins("run leaky --n 0 --log error").assert().code(2).stderr(contains("error: n = 0 is not allowed"));
}

#[test]
fn messages_for_programs_are_objects() {
    let log = objects(&mut leakybins(&format!("{TINY} --log debug --log-format json")));
    assert!(log.iter().all(|line| line["kind"] == "log" && line["message"].is_string()), "{log:?}");
    let time = |line: &Value| line["time"].as_str().is_some_and(|t| t.len() == 24 && t.ends_with('Z'));
    assert!(log.iter().all(time), "{log:?}");
    let find = |text: &str| {
        let found = log.iter().find(|line| line["message"].as_str().is_some_and(|message| message.contains(text)));
        found.unwrap_or_else(|| panic!("{text} is missing in {log:?}"))
    };
    let backend = find("backend: cpu");
    assert_eq!((&backend["level"], &backend["backend"]), (&"info".into(), &"cpu".into()));
    let finished = find("finished");
    assert_eq!((&finished["level"], &finished["first"], &finished["end"]), (&"debug".into(), &0.into(), &3.into()));
    assert!(finished["balls_per_s"].as_f64().is_some_and(|rate| rate > 0.0));
    assert_eq!(find("short of 20 autocorrelation times")["level"], "warn");
}

#[test]
fn an_error_for_programs_is_one_object() {
    let bad = folder("log-format = 'json'\nn = 0\n");
    let broken = folder("n = [");
    for (arguments, place, exit, code, message) in [
        ("run leaky --n 0 --log-format json", &bad, "usage", 2, "n = 0 is not allowed"),
        ("run leaky --log-format=json --n lots", &bad, "usage", 2, "'lots' is not a whole number"),
        ("--log-format json run sieve", &bad, "usage", 2, "unrecognized subcommand 'sieve'"),
        ("run leaky --spec x.toml", &bad, "usage", 2, "n = 0 is not allowed"),
        ("run leaky --spec x.toml --log-format json", &broken, "usage", 2, "x.toml: this is not TOML"),
        ("run leaky --backend gpu --gpu no-such --seed 1 --log-format json", &bad, "no-device", 4, "no adapter fits"),
    ] {
        let mut command = leakybins(arguments);
        command.current_dir(place.path()).assert().code(code).stdout("");
        let lines = objects(&mut command);
        let [error] = &lines[..] else { panic!("{arguments}: {lines:?}") };
        assert_eq!(
            (&error["kind"], &error["exit"], &error["exit_code"]),
            (&"error".into(), &exit.into(), &code.into())
        );
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{error}");
    }
    let by_variable = objects(leakybins("run leaky --n 0").env("LEAKYBINS_LOG_FORMAT", "json"));
    assert_eq!(by_variable[0]["kind"], "error");
}

#[test]
fn progress_for_programs_is_objects() {
    let lines = objects(&mut leakybins(&format!("{TINY} --progress json --log error")));
    let [last] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&last["kind"], &last["rounds"], &last["of"]), (&"progress".into(), &60.into(), &60.into()));
    for field in ["elapsed_s", "rounds_per_s", "balls_per_s", "eta_s"] {
        assert!(last[field].as_f64().is_some_and(|x| x >= 0.0), "{field} in {last}");
    }
    let sweep = "sweep leaky --lambda 0.5,0.75 --n 8 --balls 1e4 --replicas 4 --backend cpu --seed 1";
    let parts: Vec<Value> = objects(&mut leakybins(&format!("{sweep} --progress json --log error")));
    let numbers: Vec<_> = parts.iter().map(|line| (line["part"].as_u64(), line["parts"].as_u64())).collect();
    assert_eq!(numbers, [(Some(1), Some(2)), (Some(2), Some(2))]);
    assert!(parts.iter().all(|line| line["rounds"] == line["of"]), "{parts:?}");
    for quiet in ["--progress json --quiet", "--progress never"] {
        leakybins(&format!("{TINY} --log error {quiet}")).assert().success().stderr(is_empty());
    }
}

/// Every command with its words, and its long flags.
fn commands() -> Vec<(Vec<String>, Vec<String>)> {
    fn look(command: &clap::Command, path: &[String], all: &mut Vec<(Vec<String>, Vec<String>)>) {
        let flags = command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
        all.push((path.to_vec(), flags));
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            look(inner, &[path, &[inner.get_name().to_owned()]].concat(), all);
        }
    }
    let mut root = Cli::command();
    root.build();
    let mut all = Vec::new();
    look(&root, &["leakybins".to_owned()], &mut all);
    all
}

#[test]
fn completions_know_every_command_and_flag() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = output(&mut leakybins(&format!("completions {shell}")));
        for (path, flags) in commands() {
            let name = path.last().expect("a name");
            assert!(script.contains(name.as_str()), "{shell}: {name} is missing");
            for flag in flags {
                assert!(script.contains(&flag), "{shell}: --{flag} is missing");
            }
        }
    }
    leakybins("completions tcsh").assert().code(2).stderr(contains("possible values: bash"));
}

#[test]
fn there_is_a_page_for_every_command_with_every_flag() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    leakybins("man").arg(folder.path()).assert().success().stdout("");
    let commands = commands();
    assert!(commands.len() > 8);
    for (path, flags) in &commands {
        let page = fs::read_to_string(folder.path().join(path.join("-") + ".1")).expect("a page");
        for flag in flags {
            let escaped = format!("\\-\\-{}", flag.replace('-', "\\-"));
            assert!(page.contains(&escaped), "--{flag} is missing in the page of {}", path.join(" "));
        }
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), commands.len());
    assert_eq!(output(&mut leakybins("man")), fs::read_to_string(folder.path().join("leakybins.1")).expect("a page"));
    leakybins("man /no/such/folder").assert().code(2).stderr(contains("name a writable directory"));
    without_warnings(folder.path());
}

/// Where there is groff, it has nothing to say about the pages.
#[allow(clippy::print_stdout, reason = "the test says what it could not check")]
fn without_warnings(folder: &Path) {
    let groff =
        |path: &Path| std::process::Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(path).output();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match groff(&path) {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && said.is_empty(), "{}: {said}", path.display());
            }
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "groff cannot be started: {error}");
                println!("groff is not installed: the pages are not checked for warnings");
                return;
            }
        }
    }
}
