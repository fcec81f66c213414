//! The command as its users meet it: real processes, files, pipes and signals.

use assert_cmd::Command;
use clap::CommandFactory;
use leakybins::backend::{Control, Host, Pool};
use leakybins::process::ProcessSpec;
use leakybins::process::leaky::Parameters;
use leakybins::run::{Schedule, Spec};
use predicates::prelude::*;
use predicates::str::contains;
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
fn output(arguments: &str) -> String {
    let output = leakybins(arguments).assert().success().get_output().stdout.clone();
    String::from_utf8(output).expect("results are UTF-8")
}

/// Names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The JSON result without the line that may differ between two runs.
fn without_elapsed(json: &str) -> String {
    let lines = json.lines().filter(|line| !line.starts_with("  \"elapsed_s\": "));
    lines.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn the_flags_are_consistent() {
    leakybins::cli::Cli::command().debug_assert();
}

#[test]
fn json_is_pinned() {
    let json = output(&format!("{TINY} --format json"));
    assert_eq!(json.lines().filter(|line| line.contains("elapsed_s")).count(), 1);
    let pinned = include_str!("cli/tiny.json").replace("VERSION", env!("CARGO_PKG_VERSION"));
    assert_eq!(without_elapsed(&json), pinned);
    let value: Value = serde_json::from_str(&json).expect("valid JSON");
    assert!(value["elapsed_s"].as_f64().is_some_and(|s| s >= 0.0));
}

#[test]
fn json_is_the_same_from_every_cpu_backend_and_any_number_of_threads() {
    let run = |backend: &str, threads: u32| {
        let json = output(&format!(
            "run leaky --n 100 --d 3 --arrivals poisson --start random:500 --replicas 20 --rounds 60 --measure pre \
             --loads-every 2 --seed 3 --format json --backend {backend} --threads {threads}"
        ));
        let mut value: Value = serde_json::from_str(&json).expect("valid JSON");
        assert_eq!(value["backend"], backend);
        let object = value.as_object_mut().expect("an object");
        assert!(object.remove("elapsed_s").is_some() && object.remove("backend").is_some());
        value
    };
    let reference = run("reference", 1);
    assert_eq!(run("cpu", 1), reference);
    assert_eq!(run("cpu", 3), reference);
}

#[test]
fn large_integers_and_floats_survive_json() {
    let json =
        output("run leaky --n 4 --lambda 1-1e-16 --replicas 1 --rounds 4 --seed 18446744073709551615 --format json");
    assert!(json.contains("\"seed\": 18446744073709551615,"), "{json}");
    assert!(json.contains("\"lambda\": 0.9999999999999999,"), "{json}");
}

#[test]
fn a_burn_in_of_auto_is_the_number_that_it_says() {
    let run = "run leaky --backend cpu --n 64 --lambda 0.5 --replicas 4 --rounds 500 --seed 3 --format csv --burn-in";
    let found = leakybins(&format!("{run} auto")).assert().success();
    let said = String::from_utf8_lossy(&found.get_output().stderr).into_owned();
    let number = said.split("burn-in: ").nth(1).and_then(|rest| rest.split(' ').next()).expect("the number");
    assert!(said.contains("total load from empty and each:2 agree within 2 %"), "{said}");
    assert_eq!(String::from_utf8_lossy(&found.get_output().stdout), output(&format!("{run} {number}")));
    leakybins("run leaky --d 1 --n 64 --lambda 0.99 --rounds 50 --burn-in auto --backend cpu --seed 1")
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("no burn-in below rounds = 50").and(contains("use more --rounds")));
}

const WAY: &str = "recover leaky --n 8 --lambda 0.5 --d 2 --start one-bin:30 --replicas 5 --rounds 40 --seed 7 -q";

#[test]
fn a_way_back_is_the_same_in_every_form() {
    let json: Value = serde_json::from_str(&output(&format!("{WAY} --format json --threads 1"))).expect("valid JSON");
    assert_eq!(output(&format!("{WAY} --format json --threads 3")), output(&format!("{WAY} --format json")));
    let fields: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    let head = ["schema", "kind", "version", "stream_version", "process", "parameters", "seed", "replicas", "rounds"];
    assert_eq!(fields, [&head[..], &["confidence", "trajectory", "recovery"]].concat());
    let (points, recovery) = (json["trajectory"].as_array().expect("points"), &json["recovery"]);
    assert_eq!((points[0]["round"].as_u64(), points[0]["max_load"]["mean"].as_f64()), (Some(0), Some(30.0)));
    assert_eq!(points[0]["theory"]["mean_total"].as_f64(), Some(30.0));
    assert_eq!((recovery["recovered"].as_u64(), recovery["censored"].as_u64()), (Some(5), Some(0)));
    let rounds: u64 = recovery["histogram"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(rounds, 5);

    let text = output(&format!("{WAY} --format csv"));
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = table.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), points.len());
    for (row, point) in rows.iter().zip(points) {
        let number = |i: usize| row[i].parse::<f64>().ok();
        let quantile = |observable: &str, i: usize| point[observable]["quantiles"][i][1].as_f64();
        assert_eq!(number(0), point["round"].as_f64());
        for (first, observable, theory) in [(1, "max_load", "mean_max"), (8, "total_load", "mean_total")] {
            let cells = ["mean", "low", "high"].map(|field| point[observable][field].as_f64());
            assert_eq!([number(first), number(first + 1), number(first + 2)], cells);
            let quantiles = [quantile(observable, 0), quantile(observable, 1), quantile(observable, 2)];
            assert_eq!([number(first + 3), number(first + 4), number(first + 5)], quantiles);
            assert_eq!(number(first + 6), point["theory"][theory].as_f64());
        }
    }

    let table = output(WAY);
    for text in ["start one-bin:30", "recovered  5 of 5 replicas", "max load is at most", "95 % interval", "50 %"] {
        assert!(table.contains(text), "{text} is missing in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_way_back_with_a_pool_says_what_has_recovered() {
    let way = "recover capped --start one-bin:1000 --n 64 --seed 1 --replicas 8 --level 2 -q";
    let table = output(way);
    for text in ["max load + pool / n is at most 2", "balls per bin", "include those in the pool", "mean field"] {
        assert!(table.contains(text), "{text} is missing in\n{table}");
    }
    let json: Value = serde_json::from_str(&output(&format!("{way} --format json"))).expect("valid JSON");
    // At most 64 balls leave in a round, and 192 at most may be left.
    assert!(json["recovery"]["mean"].as_f64().is_some_and(|mean| mean >= 13.0), "{}", json["recovery"]);
    assert!(!output(WAY).contains("exact for these parameters"));
    assert!(output(&WAY.replace("--d 2", "--d 1")).contains("Balls per bin: exact for these"));
}

#[test]
fn a_way_back_that_does_not_end_is_said_to_be_censored() {
    let short = format!("{WAY} --level 1 --format json").replace("--rounds 40", "--rounds 10");
    let result = leakybins(&short).assert().success().stderr(contains("5 of 5 replicas were still above level 1"));
    let json: Value = serde_json::from_slice(&result.get_output().stdout).expect("valid JSON");
    let recovery = &json["recovery"];
    assert_eq!((recovery["censored"].as_u64(), recovery["mean"].is_null()), (Some(5), true));
    assert_eq!(recovery["quantiles"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_bad_way_back_is_refused_with_reason_and_remedy() {
    for (arguments, message) in [
        ("--lambda 1", "give --level"),
        ("--lambda 1 --level 3", "give --rounds"),
        ("--lambda 2", "use 0 <= lambda < 1"),
        ("--replicas 0", "use 1 <= replicas"),
        ("--rounds 2^49", "rounds = 562949953421312 is not allowed"),
        ("--points-per-decade 0", "--points-per-decade"),
        ("--confidence 1", "use e.g. 0.95"),
        ("--start nowhere", "use empty, each:H"),
        ("--backend gpu", "unexpected argument"),
        ("-o /no/such/folder/way", "cannot be written"),
    ] {
        leakybins(&format!("recover leaky {arguments}")).assert().code(2).stdout("").stderr(contains(message));
    }
}

const COVER: &str = "cover repeated --n 8 --replicas 5 --seed 7 -q";

#[test]
fn cover_times_are_the_same_in_every_form() {
    let json: Value = serde_json::from_str(&output(&format!("{COVER} --format json --threads 1"))).expect("valid JSON");
    assert_eq!(output(&format!("{COVER} --format json --threads 3")), output(&format!("{COVER} --format json")));
    let fields: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    let head = ["schema", "kind", "version", "stream_version", "process", "parameters", "queue", "balls", "seed"];
    let tail = ["replicas", "rounds", "confidence", "n_ln_n", "cover", "first_ball", "max_delay", "moves"];
    assert_eq!(fields, [&head[..], &tail, &["ball_rounds", "mean_delay"]].concat());
    assert_eq!((json["queue"].as_str(), json["balls"].as_u64()), (Some("fifo"), Some(8)));
    let cover = &json["cover"];
    let counts = cover["histogram"].as_object().expect("counts");
    assert_eq!(counts.values().filter_map(Value::as_u64).sum::<u64>(), 5);
    let rounds: Vec<f64> = counts
        .iter()
        .flat_map(|(round, count)| vec![round.parse().expect("a round"); count.as_u64().expect("a count") as usize])
        .collect();
    let mean = rounds.iter().sum::<f64>() / 5.0;
    assert!((cover["mean"].as_f64().expect("no replica is censored") - mean).abs() < 1e-9);
    let scaled = cover["scaled"].as_f64().expect("a number");
    assert!((scaled - mean / (8.0 * f64::ln(8.0))).abs() < 1e-9, "{scaled}");
    let extremes = [rounds.iter().copied().fold(f64::MAX, f64::min), rounds.iter().copied().fold(0.0, f64::max)];
    assert_eq!([&cover["least"], &cover["largest"]].map(Value::as_f64), extremes.map(Some));
    assert_eq!(json["ball_rounds"].as_f64(), Some(8.0 * 5.0 * mean));

    let text = output(&format!("{COVER} --format csv"));
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let columns = table.headers().expect("a header").clone();
    let rows: Vec<csv::StringRecord> = table.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.iter().map(|row| &row[0]).collect::<Vec<_>>(), ["cover", "first_ball", "max_delay"]);
    for row in &rows {
        for (column, cell) in columns.iter().zip(row).skip(1) {
            let times = &json[&row[0]];
            let value = match column.strip_prefix('q') {
                Some(_) => {
                    let i = ["q05", "q50", "q95"].iter().position(|name| *name == column).expect("a quantile");
                    &times["quantiles"][i][1]
                }
                None => &times[column],
            };
            assert_eq!(cell.parse::<f64>().ok(), value.as_f64(), "{column} of {}", &row[0]);
        }
    }

    let table = output(COVER);
    for text in
        ["queue fifo, balls 8, replicas 5", "95 % interval", "all balls  in 5 of 5 replicas", " n ln n", "mean delay"]
    {
        assert!(table.contains(text), "{text} is missing in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("cover.svg").display().to_string();
    output(&format!("{COVER} --plot {picture}"));
    assert!(fs::read_to_string(picture).expect("a picture").contains("first ball"));
}

#[test]
fn balls_that_do_not_come_everywhere_in_time_are_said_to_be_censored() {
    let short = format!("{COVER} --rounds 12 --format json");
    let result = leakybins(&short).assert().success().stderr(contains("in 5 of 5 replicas some ball had not been"));
    let json: Value = serde_json::from_slice(&result.get_output().stdout).expect("valid JSON");
    let cover = &json["cover"];
    assert_eq!((cover["reached"].as_u64(), cover["censored"].as_u64()), (Some(0), Some(5)));
    assert!(["mean", "least", "largest", "scaled"].iter().all(|field| cover[field].is_null()), "{cover}");
    assert_eq!(json["max_delay"]["reached"].as_u64(), Some(5));
}

#[test]
fn bad_cover_times_are_refused_with_reason_and_remedy() {
    for (arguments, message) in [
        ("repeated --n 0", "n = 0 is not allowed"),
        ("repeated --start empty", "there is no ball to follow; use each:1"),
        ("repeated --start mean-field", "use random:M"),
        ("repeated --replicas 0", "use 1 <= replicas"),
        ("repeated --rounds 2^49", "rounds = 562949953421312 is not allowed"),
        ("repeated --confidence 1", "use e.g. 0.95"),
        ("repeated --queue stack", "possible values: fifo, lifo, random"),
        ("repeated --backend gpu", "unexpected argument"),
        ("repeated --n 1e7 --start each:1 --seed 1", "use fewer bins, fewer balls or fewer --threads"),
        ("leaky", "unrecognized subcommand 'leaky'"),
        ("repeated -o /no/such/folder/cover", "cannot be written"),
    ] {
        leakybins(&format!("cover {arguments}")).assert().code(2).stdout("").stderr(contains(message));
    }
}

#[test]
fn csv_is_one_tidy_table() {
    let text = output(&format!("{TINY} --format csv"));
    let mut table = csv::Reader::from_reader(text.as_bytes());
    assert_eq!(
        table.headers().expect("a header"),
        ["observable", "value", "count", "fraction", "exceedance", "low", "high", "theory"].as_slice()
    );
    type Row = (String, u64, u64, f64, f64, Option<f64>, Option<f64>, Option<f64>);
    let rows: Vec<Row> = table.deserialize().map(|row| row.expect("a row")).collect();
    let json: Value = serde_json::from_str(&output(&format!("{TINY} --format json"))).expect("valid JSON");
    for observable in ["max_load", "load_per_bin"] {
        let rows: Vec<_> = rows.iter().filter(|row| row.0 == observable).collect();
        let total: u64 = rows.iter().map(|row| row.2).sum();
        assert_eq!(total, if observable == "max_load" { 15 } else { 15 * 8 });
        let mut at_least = total;
        for &&(_, value, count, fraction, exceedance, low, high, theory) in &rows {
            let json = &json["observables"][observable];
            assert_eq!(json["histogram"].get(value.to_string()).map_or(0, |c| c.as_u64().expect("a count")), count);
            let level = json["exceedance"].get(value as usize);
            assert_eq!(
                (low, high),
                level.map_or((None, None), |level| (level["low"].as_f64(), level["high"].as_f64()))
            );
            assert!(theory.is_some_and(|p| (0.0..=1.0).contains(&p)));
            assert_eq!((fraction, exceedance), (count as f64 / total as f64, at_least as f64 / total as f64));
            at_least -= count;
        }
        assert_eq!(at_least, 0);
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_holds_the_table_of_the_csv() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let output = leakybins(&format!("{TINY} --format parquet")).assert().success().get_output().stdout.clone();
    let reader = SerializedFileReader::new(bytes::Bytes::from(output)).expect("Parquet");
    let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
    let csv = self::output(&format!("{TINY} --format csv"));
    assert_eq!(rows.len() + 1, csv.lines().count());
    let names: Vec<&str> = rows[0].get_column_iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.join(","), csv.lines().next().expect("a header"));
}

#[test]
fn the_table_says_everything_in_eighty_columns() {
    let table = output(TINY);
    for text in [
        "n 8, lambda 0.5, d 2, arrivals binomial, start empty",
        "replicas 3, rounds 20, burn-in 5, every 3, loads-every 1",
        "seed        7",
        "15 rounds, 5 a replica",
        "balls/s",
        "backend     cpu",
        "stream 1",
        "P(M >= k)",
        "P(L >= k)",
        "95 % interval",
        "theory",
        "spread of the 3",
    ] {
        assert!(table.contains(text), "{text} is missing in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn long_histograms_are_grouped_with_a_note() {
    let table =
        output("run leaky --n 5000 --start file:tests/cli/steps.txt --replicas 1 --rounds 1 --backend cpu --seed 1");
    assert!(table.contains("levels seen are grouped"), "{table}");
    assert!(table.lines().count() < 80 && table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_load_law_that_was_not_asked_for_is_said_to_be_missing() {
    assert!(output(&format!("{TINY} --loads-every 0")).contains("not recorded"));
    let json: Value =
        serde_json::from_str(&output(&format!("{TINY} --loads-every 0 --format json"))).expect("valid JSON");
    assert_eq!(json["observables"]["load_per_bin"], serde_json::json!({"mean": null, "histogram": {}}));
}

#[test]
fn a_fresh_seed_is_shown_and_gives_the_result_again() {
    const RUN: &str = "run leaky --backend cpu --n 50 --replicas 2 --rounds 30 --format json --quiet";
    let fresh = leakybins(RUN).assert().success().stderr(contains("seed: ")).get_output().stdout.clone();
    let fresh = String::from_utf8(fresh).expect("UTF-8");
    let seed = serde_json::from_str::<Value>(&fresh).expect("valid JSON")["seed"].as_u64().expect("a seed");
    let again = output(&format!("{RUN} --seed {seed}"));
    assert_eq!(without_elapsed(&again), without_elapsed(&fresh));
    assert_ne!(without_elapsed(&output(RUN)), without_elapsed(&fresh), "two fresh seeds are the same");
}

#[test]
fn standard_error_names_the_backend_unless_quiet() {
    const LONG: &str = "run leaky --n 8 --lambda 0.5 --replicas 16 --rounds 1000 --seed 7 --backend cpu";
    leakybins(LONG)
        .assert()
        .success()
        .stderr(predicate::str::is_match("^backend: cpu, [0-9]+ threads\n$").expect("valid"));
    leakybins(&format!("{LONG} --quiet")).assert().success().stderr("");
}

#[test]
fn questionable_parameters_are_warned_about() {
    let warned = |command: &str, lines, text| {
        let count = predicate::function(move |text: &str| text.lines().count() == lines);
        leakybins(&format!("{command} --seed 1 --quiet")).assert().success().stderr(contains(text).and(count));
    };
    warned("run leaky --lambda 1 --n 8 --replicas 3 --rounds 9 --burn-in 8", 1, "warning: lambda = 1");
    warned("run leaky --lambda 0.5 --n 8 --replicas 1 --rounds 99", 1, "warning: one replica");
    warned("run leaky --lambda 0.99 --d 1 --replicas 16 --rounds 99", 1, "short of 20 autocorrelation times");
}

#[test]
fn rules_end_a_run_and_say_so() {
    const RUN: &str = "run leaky --backend cpu --n 8 --lambda 0.5 --rounds 60 --burn-in 20 --seed 7";
    let json = |flags: &str| -> Value {
        serde_json::from_str(&output(&format!("{RUN} --format json {flags}"))).expect("valid JSON")
    };
    let stopped = json("--rel-err 0.1 --at 2");
    assert_eq!((&stopped["ended"], &stopped["stopping"]["at"]), (&"rel-err".into(), &2.into()));
    assert_eq!(stopped["replicas"], 1 << 20);
    assert!(stopped["rel_err"].as_f64().is_some_and(|e| e <= 0.1));
    let done = stopped["replicas_done"].as_u64().expect("a count");
    let fixed = json(&format!("--replicas {done}"));
    assert_eq!((&fixed["ended"], fixed.get("stopping")), (&"replicas".into(), None));
    assert_eq!(fixed["observables"], stopped["observables"]);
    let table = output(&format!("{RUN} --max-hits 100 --at 2 --max-time 2h"));
    for text in ["max-hits 100 of M >= 2: ", "max-time 7200 s", "ended by max-hits after"] {
        assert!(table.contains(text), "{text} is missing in\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    leakybins(&format!("{RUN} --replicas 50 --rel-err 0.01"))
        .assert()
        .success()
        .stderr(contains("the relative error 0.01 was not reached (it is 0.").and(contains("use more --replicas")));
}

#[test]
fn intervals_are_as_asked_for() {
    let json = |flags: &str| -> Value {
        let run = "run leaky --backend cpu --n 8 --rounds 20 --burn-in 5 --every 3 --seed 7 --format json";
        let text = output(&format!("{run} {flags}"));
        serde_json::from_str(&text).expect("valid JSON")
    };
    let width = |value: &Value| {
        let max_load = &value["observables"]["max_load"];
        let of = |value: &Value| value["high"].as_f64().expect("a limit") - value["low"].as_f64().expect("a limit");
        (of(max_load), of(&max_load["exceedance"][2]))
    };
    let (plain, loose, band) =
        (json("--replicas 9"), json("--replicas 9 --confidence 0.5"), json("--replicas 9 --band simultaneous"));
    assert_eq!((&plain["confidence"], &plain["band"]), (&0.95.into(), &"pointwise".into()));
    assert_eq!((&loose["confidence"], &band["band"]), (&0.5.into(), &"simultaneous".into()));
    assert!(width(&loose).0 < width(&plain).0 && width(&loose).1 < width(&plain).1);
    assert!(width(&band).0 == width(&plain).0 && width(&band).1 > width(&plain).1);
    let single = json("--replicas 1");
    assert!(
        single["observables"]["max_load"]["low"].is_null() && single["observables"]["max_load"]["mean"].is_number()
    );
    assert_eq!(json("--lambda 1 --replicas 2")["theory"], Value::Null);
}

#[test]
fn bad_input_is_refused_with_reason_and_remedy() {
    for (arguments, message) in [
        ("--n 0", "n = 0 is not allowed (there must be a bin); use n >= 1"),
        ("--n 2^31+1", "'2^31+1' is not a power of whole numbers"),
        ("--n 2^32 --backend cpu", "n = 4294967296 is not allowed"),
        ("--n 2^31 --backend cpu", "the balls of a round need more than 2^31 random words"),
        ("--n 1e20", "write a whole number such as"),
        ("--lambda NaN", "lambda = NaN is not allowed"),
        ("--lambda -0.1", "lambda = -0.1 is not allowed"),
        ("--lambda 1.5", "use 0 <= lambda < 1"),
        ("--lambda lots", "'lots' is not a rate; write a number such as"),
        ("-d 0", "d = 0 is not allowed (a ball samples 1 to 256 bins); use 1 <= d <= 256"),
        ("-d 257", "d = 257 is not allowed"),
        ("--start full", "'full' is not an initial state; use empty"),
        ("--start each:2^32", "balls are too many"),
        ("--replicas 0", "replicas = 0 is not allowed"),
        ("--replicas 2^33", "use 1 <= replicas <= 2^32"),
        ("--rounds 0", "rounds = 0 is not allowed"),
        ("--rounds 2^49", "use 1 <= rounds <= 2^48"),
        ("--rounds 10 --burn-in 10", "burn-in = 10 leaves nothing of 10 rounds"),
        ("--every 0", "every = 0 samples none"),
        ("--burn-in soon", "10k or 4Mi, or auto"),
        ("--rounds 10 --burn-in 4 --every 7", "every = 7 samples none of the 6 rounds"),
        ("--seed -1", "unexpected argument '-1'"),
        ("--seed 2^64", "exceeds 2^64 - 1"),
        ("--threads 0", "1..=4096"),
        ("--submit-ms 0", "1..=10000"),
        ("--backend tpu", "possible values: auto, gpu, all, cpu, reference"),
        ("--confidence 95", "use e.g. 0.95"),
        ("--rel-err -1", "use e.g. 0.05"),
        ("--rel-err nan --at 3", "use e.g. 0.05"),
        ("--max-hits 5", "add --at K"),
        ("--max-hits 0 --at 5", "use at least 1"),
        ("--at 5", "add --rel-err or --max-hits"),
        ("--at 0 --rel-err 0.1", "at least 1"),
        ("--max-time 0", "positive number of seconds"),
        ("--max-time soon", "90s, 10m, 2h 30m"),
        ("--format xml", "possible values: table, json, csv"),
        ("--output -", "name a file, or leave the option out"),
        ("--dump-loads -", "name a file, or leave the option out"),
        ("--start mean-field --lambda 1", "start = mean-field: lambda = 1 has no stationary law"),
        ("--start mean-field --d 1 --lambda 1-1e-9", "levels of probability above 2^-64 (mean load"),
        ("--no-such-flag", "unexpected argument"),
        ("--backend cpu --gpu 0", "the CPU was asked for; leave out one or the other"),
        ("--backend reference --allow-software", "the CPU was asked for"),
        ("--n 5 --n 6", "cannot be used multiple times"),
    ] {
        leakybins(&format!("run leaky {arguments}")).assert().code(2).stdout("").stderr(contains(message));
    }
    leakybins("run").assert().code(2);
    leakybins("run sieve").assert().code(2).stderr(contains("unrecognized subcommand 'sieve'"));
}

#[test]
fn bad_load_files_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (content, message) in [
        (&b"1 2 3"[..], "holds 3 loads for 4 bins; write exactly one load for each bin, or change --n"),
        (b"1, 2, x, 4", "'x' is not a load; write integers from 0 to 2^31"),
        (b"1 2 3 -4", "'-4' is not a load"),
        (b"1 2 3 2147483649", "'2147483649' is not a load"),
        (b"\xff\xfe 1 2 3", "cannot be read"),
    ] {
        let path = folder.path().join("loads.txt");
        fs::write(&path, content).expect("a file");
        leakybins("run leaky --n 4 --start")
            .arg(format!("file:{}", path.display()))
            .assert()
            .code(2)
            .stderr(contains(message));
    }
    for (path, message) in [("nowhere.txt", "cannot be read ("), (".", "is not a regular file")] {
        let path = format!("file:{}", folder.path().join(path).display());
        leakybins("run leaky --n 4 --start").arg(path).assert().code(2).stdout("").stderr(contains(message));
    }
}

#[test]
fn a_result_file_holds_what_standard_output_would() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("result.csv");
    fs::write(&path, "an older result").expect("a file");
    leakybins(&format!("{TINY} --format csv -o result.csv")).current_dir(folder.path()).assert().success().stdout("");
    assert_eq!(fs::read_to_string(&path).expect("the result"), output(&format!("{TINY} --format csv")));
    assert_eq!(files(folder.path()), ["result.csv"]);
}

#[test]
fn unwritable_files_are_refused_before_the_run() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let good = folder.path().join("good");
    for option in ["--output", "--dump-loads"] {
        for bad in ["nowhere/result", ""] {
            let other = if option == "--output" { "--dump-loads" } else { "--output" };
            let mut command = leakybins("run leaky --rounds 1e12 --seed 1");
            command.arg(option).arg(folder.path().join(bad)).arg(other).arg(&good);
            command
                .assert()
                .code(2)
                .stdout("")
                .stderr(contains("cannot be written").and(contains("writable directory")));
        }
    }
    for (result, loads) in [("x", "x"), ("x", "./x"), ("folder/../x", "x")] {
        fs::create_dir_all(folder.path().join("folder")).expect("a folder");
        let mut command = leakybins(&format!("run leaky --seed 1 --output {result} --dump-loads {loads}"));
        command.current_dir(folder.path()).assert().code(2).stderr(contains("name the same file"));
        fs::remove_dir(folder.path().join("folder")).expect("an empty folder");
    }
    assert!(files(folder.path()).is_empty());
}

#[test]
fn dumped_loads_are_those_of_a_library_run() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("loads");
    leakybins("run leaky --backend cpu --n 1000 --d 1 --replicas 7 --rounds 30 --seed 5 --dump-loads")
        .arg(&path)
        .assert()
        .success();
    let schedule = Schedule { rounds: 30, burn_in: 15, every: 10, loads_every: 1, measure: Default::default() };
    let process = ProcessSpec::Leaky(Parameters { n: 1000, d: 1, ..Parameters::default() });
    let spec = Spec { process, seed: 5, replicas: 7, schedule, stopping: None };
    let mut bytes = Vec::new();
    leakybins::run::run(&spec, &mut Pool::from(Host::reference()), &Control::default(), Some(&mut bytes), &mut |_| {})
        .expect("a valid run");
    assert_eq!(bytes.len(), 4 * 7 * 1000);
    assert!(fs::read(&path).expect("the loads") == bytes);
    assert_eq!(files(folder.path()), ["loads"]);
}

#[test]
fn help_has_examples_and_exit_codes() {
    assert!(output("--help").contains("130  interrupted by a signal"));
    assert!(output("run --help").contains("leakybins run leaky --format csv --seed 1 | head"));
    let flags = output("run leaky --help");
    for flag in ["--n <N>", "--lambda", "--replicas", "--dump-loads", "[default: 0.95]"] {
        assert!(flags.contains(flag), "{flag} is missing in\n{flags}");
    }
}

/// The examples in the help of the commands are accepted, up to the point where they would begin to work.
#[test]
fn the_examples_of_the_help_parse() {
    for (command, least) in [("run", 5), ("recover", 4), ("cover", 4)] {
        let help = output(&format!("{command} --help"));
        let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  leakybins ")).collect();
        assert!(examples.len() >= least);
        for example in examples {
            let words = example.split('|').next().unwrap_or_default().split_whitespace();
            let parsed = leakybins::cli::Cli::command().try_get_matches_from([PROGRAM].into_iter().chain(words));
            assert!(parsed.is_ok(), "{example}");
        }
    }
}

#[test]
fn devices_and_doctor_speak_json() {
    let devices: Value = serde_json::from_str(&output("devices --format json")).expect("valid JSON");
    for device in devices.as_array().expect("a list") {
        assert!(device["name"].is_string() && device["index"].is_u64());
    }
    leakybins("devices").assert().success();

    let doctor = leakybins("doctor --format json").assert();
    let doctor = doctor.get_output();
    let diagnosis: Value = serde_json::from_slice(&doctor.stdout).expect("valid JSON");
    let works = diagnosis["gpu_works"].as_bool().expect("a verdict");
    assert_eq!(doctor.status.code(), Some(if works { 0 } else { 4 }));
    let checks = diagnosis["checks"].as_array().expect("a list");
    assert!(checks.iter().all(|check| (check["status"] == "ok") == check["remedy"].is_null()), "{checks:?}");
    assert!(checks.iter().any(|check| check["name"] == "CPU self-check" && check["status"] == "ok"), "{checks:?}");
}

#[test]
fn a_gpu_that_is_not_there_is_no_cpu_run() {
    leakybins("run leaky --backend gpu --gpu no-such-adapter --seed 1").assert().code(4).stdout("");
    // An unset variable of a script names no adapter, a software one least of all.
    leakybins("run leaky --seed 1 --gpu").arg("").assert().code(4).stdout("").stderr(contains("no adapter fits ''"));
}

/// A run on profiles of a fraction of a second.
const LARGE: &str = "run leaky --n 1e12 --replicas 4 --rounds 60 --seed 1";

#[test]
fn a_run_on_profiles_says_so_everywhere() {
    let table = output(&format!("{LARGE} --backend profile -q"));
    for text in ["n 1000000000000,", "backend     profile", "profile stream 1", "theory"] {
        assert!(table.contains(text), "{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let text = output(&format!("{LARGE} --backend profile --format json --threads 1"));
    let json: Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!((&json["backend"], &json["profile_stream_version"]), (&"profile".into(), &1.into()));
    assert_eq!(json["parameters"]["n"], 1_000_000_000_000u64);
    // `auto` is the same by its rule, and says so.
    let auto = leakybins(&format!("{LARGE} --format json")).assert().success().stderr(contains("(auto: n is large;"));
    let auto = String::from_utf8(auto.get_output().stdout.clone()).expect("UTF-8");
    assert_eq!(without_elapsed(&auto), without_elapsed(&text));
    // One that was run bin by bin has no such field.
    let json: Value = serde_json::from_str(&output(&format!("{TINY} --format json"))).expect("valid JSON");
    assert!(json.get("profile_stream_version").is_none());
}

#[test]
fn the_largest_run_has_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("p.svg");
    let largest = "run leaky --n 1e15 --lambda 0.9 --replicas 64 --rounds 400 --every 1 --seed 1";
    // The counts pass 2^64 and are exact: they add up to n for each of 64 x 200 samples.
    let json = output(&format!("{largest} --format json --plot {}", picture.display()));
    let counts =
        &json[json.find("\"load_per_bin\"").expect("the loads")..json.find("\"total_load\"").expect("the next")];
    let count =
        |line: &str| line.trim_end_matches(',').rsplit_once(": ").and_then(|(_, count)| count.parse::<u128>().ok());
    let counts: Vec<u128> = counts.lines().filter_map(count).collect();
    assert_eq!(counts.iter().sum::<u128>(), 12_800_000_000_000_000_000, "{counts:?}");
    let balls = json.lines().find_map(|line| line.trim().strip_prefix("\"balls\": ")).expect("balls");
    assert!(balls.trim_end_matches(',').parse::<u128>().is_ok_and(|balls| balls > 1 << 64), "{balls}");
    assert!(fs::read_to_string(picture).expect("a picture").contains("<svg"));
    let csv = output(&format!("{largest} --format csv"));
    assert!(csv.contains(&format!("load_per_bin,0,{},", counts[0])), "{csv}");
    let table = output(&format!("{largest} -q"));
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn what_needs_single_bins_or_more_than_128_bits_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = folder.path().join("loads");
    for (arguments, reason) in [
        (format!("{LARGE} --backend cpu"), "or `leakybins run` with --backend profile"),
        (format!("{LARGE} --backend profile --dump-loads {}", dump.display()), "no loads of single bins to dump"),
        (format!("{LARGE} --dump-loads {}", dump.display()), "or `leakybins run` with --backend profile"),
        (format!("{LARGE} --backend profile --burn-in auto"), "one found for fewer bins will do"),
        ("recover leaky --n 1e12 --seed 1".to_owned(), "or `leakybins run` with --backend profile"),
        ("run leaky --n 1e16 --seed 1".to_owned(), "use 1 <= n <= 10^15"),
        ("run leaky --n 1e15 --rounds 1e6 --every 1 --seed 1".to_owned(), "sample less often (--every)"),
        ("sweep leaky --n 1e12 --backend cpu --seed 1".to_owned(), "or `leakybins run` with --backend profile"),
    ] {
        leakybins(&arguments).assert().code(2).stdout("").stderr(contains(reason));
    }
    assert!(files(folder.path()).is_empty(), "nothing is left of a refused run");
}

#[test]
fn a_sweep_takes_profiles_for_the_points_with_many_bins() {
    let sweep = "sweep leaky --n 100,1e12 --lambda 0.9 --balls 1e7 --replicas 32 --seed 3";
    leakybins(&format!("{sweep} --dry-run")).assert().success().stdout(contains("n 1000000000000, lambda 0.9, d 2"));
    let json: Value = serde_json::from_str(&output(&format!("{sweep} --format json -q"))).expect("valid JSON");
    let points = json["points"].as_array().expect("points");
    assert!(points[0].get("profile_stream_version").is_none());
    assert_eq!(points[1]["profile_stream_version"], 1);
    let flags = ["n", "seed", "replicas", "rounds", "burn_in", "every"];
    let flags = flags.map(|name| format!("--{} {}", name.replace('_', "-"), points[1][name])).join(" ");
    let again = output(&format!("run leaky --lambda 0.9 --start mean-field --loads-every 0 --format json {flags}"));
    let again: Value = serde_json::from_str(&again).expect("valid JSON");
    assert_eq!(again["observables"]["max_load"]["mean"], points[1]["max_load"]["mean"]);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, ChildStderr, Command, Stdio};
    use std::time::{Duration, Instant};

    /// Much more work than any test waits for.
    const ENDLESS: &str = "run leaky --backend cpu --n 1000 --replicas 1e6 --rounds 1e6 --seed 1";

    fn spawn(arguments: &str) -> Child {
        let mut command = Command::new(PROGRAM);
        command.args(arguments.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        command.spawn().expect("the program starts")
    }

    /// Waits for the backend line, which comes after the signal handler.
    fn await_start(child: &mut Child) -> BufReader<ChildStderr> {
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        assert!(line.starts_with("backend: "), "{line}");
        stderr
    }

    fn signal(child: &Child, name: &str) {
        let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().expect("kill runs");
        assert!(status.success());
    }

    /// Exit code of a child that must end soon; it is killed where it does not.
    fn end(child: &mut Child) -> Option<i32> {
        let patience = Instant::now() + Duration::from_secs(20);
        while Instant::now() < patience {
            if let Some(status) = child.try_wait().expect("a child of ours") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().expect("a child of ours");
        panic!("the program did not end");
    }

    fn rest(mut reader: impl Read) -> String {
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("UTF-8");
        text
    }

    #[test]
    fn a_signal_stops_a_run_without_a_result() {
        for name in ["INT", "TERM"] {
            let folder = tempfile::tempdir().expect("a temporary directory");
            let [result, loads] = ["result", "loads"].map(|name| folder.path().join(name).display().to_string());
            let mut child = spawn(&format!("{ENDLESS} -o {result} --dump-loads {loads}"));
            let stderr = await_start(&mut child);
            signal(&child, name);
            assert_eq!(end(&mut child), Some(130));
            let said = rest(stderr);
            assert!(said.starts_with("error: stopped after ") && said.contains("no result"), "{said}");
            assert!(files(folder.path()).is_empty(), "{:?}", files(folder.path()));
        }
    }

    #[test]
    fn a_signal_stops_a_way_back() {
        let mut child = spawn("recover leaky --start one-bin:2^31 --seed 1");
        let stderr = await_start(&mut child);
        signal(&child, "TERM");
        assert_eq!(end(&mut child), Some(130));
        let said = rest(stderr);
        assert!(said.starts_with("error: stopped after ") && said.contains("no result"), "{said}");
    }

    #[test]
    fn a_signal_stops_a_cover_time() {
        let mut child = spawn("cover repeated --n 4096 --seed 1");
        let stderr = await_start(&mut child);
        signal(&child, "TERM");
        assert_eq!(end(&mut child), Some(130));
        let said = rest(stderr);
        assert!(said.starts_with("error: stopped after ") && said.contains(" rounds over all replicas"), "{said}");
    }

    #[test]
    fn a_signal_stops_the_search_for_a_burn_in() {
        let slow = "run leaky --backend cpu --d 1 --lambda 1-1e-6 --rounds 1e9 --burn-in auto --seed 1";
        let mut child = spawn(slow);
        let stderr = await_start(&mut child);
        signal(&child, "INT");
        assert_eq!(end(&mut child), Some(130));
        assert_eq!(rest(stderr), "error: the run was interrupted\n");
    }

    #[test]
    fn a_hangup_is_ignored_under_nohup() {
        let script = format!("trap '' HUP; exec {PROGRAM} {ENDLESS}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let stderr = await_start(&mut child);
        signal(&child, "HUP");
        std::thread::sleep(Duration::from_millis(100));
        signal(&child, "TERM");
        assert_eq!(end(&mut child), Some(130));
        let said = rest(stderr);
        assert!(said.starts_with("error: stopped after "), "the hangup was the first signal, not ignored: {said}");
    }

    #[test]
    fn a_second_signal_stops_at_once() {
        // Placing the initial balls takes seconds and does not look at the control.
        let mut child =
            spawn("run leaky --backend reference --n 64 --start random:2^31 --replicas 1 --rounds 1 --seed 1");
        let stderr = await_start(&mut child);
        signal(&child, "INT");
        std::thread::sleep(Duration::from_millis(100));
        assert!(child.try_wait().expect("a child of ours").is_none(), "the first signal waits for the work at hand");
        signal(&child, "TERM");
        assert_eq!(end(&mut child), Some(130));
        assert_eq!(rest(stderr), "error: stopped at once by a second signal; no result\n");
        assert_eq!(rest(child.stdout.take().expect("a pipe")), "");
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        for format in ["table", "json", "csv"] {
            let mut child = spawn(&format!("{TINY} --format {format}"));
            drop(child.stdout.take());
            let stderr = child.stderr.take().expect("a pipe");
            assert_eq!(end(&mut child), Some(0));
            assert!(rest(stderr).starts_with("backend: "));
        }
    }

    #[test]
    fn closed_standard_error_does_not_stop_a_run() {
        let mut child = spawn(&format!("{TINY} --format csv"));
        drop(child.stderr.take());
        assert_eq!(end(&mut child), Some(0));
        assert_eq!(rest(child.stdout.take().expect("a pipe")), output(&format!("{TINY} --format csv")));
    }

    #[test]
    fn links_and_devices_are_written_through() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let [target, link] = ["target", "link"].map(|name| folder.path().join(name));
        fs::write(&target, "old").expect("a file");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        leakybins(&format!("{TINY} --format csv -o")).arg(&link).assert().success();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&target).expect("the result"), output(&format!("{TINY} --format csv")));
        leakybins(&format!("{TINY} -o /dev/null")).assert().success();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_unexpected_failure() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let mut command = Command::new(PROGRAM);
        command.args(TINY.split_whitespace()).stdout(full).stderr(Stdio::piped());
        let output = command.output().expect("the program runs");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the result could not be written"), "{said}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_run_that_does_not_fit_the_memory_is_refused_with_numbers() {
        let script = format!("ulimit -v 4000000; exec {PROGRAM} run leaky --backend cpu --n 2^30 --threads 1 --seed 1");
        let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{said}");
        assert!(
            said.contains("1073741824 bins at once needs") && said.contains("MiB are available; use fewer"),
            "{said}"
        );
    }
}
