//! Where the value of a flag comes from: the command line, else the environment, else the file of `--spec`, else its
//! default.
//!
//! Nothing here knows a flag of a command by name. What the command line leaves open and the file says is put behind
//! the words of the command line as `--flag=value`, so that a value is read in one way wherever it stands.

mod file;
mod print;

use super::Cli;
use super::exit::Refused;
use super::output;
use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use file::SpecFile;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The flags of experiment files.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Experiment")]
pub(super) struct Experiment {
    /// File in TOML with values of flags, by their names: flag > variable `LEAKYBINS_FLAG` > file > default
    #[arg(long, global = true, value_name = "FILE", value_parser = output::file)]
    spec: Option<PathBuf>,
    /// Write every value, defaults and seed included, as a file for --spec, and run nothing
    #[arg(long, global = true)]
    pub(super) print_spec: bool,
}

/// A command line that was understood.
pub(super) struct Request {
    pub(super) cli: Cli,
    matches: ArgMatches,
}

impl Request {
    /// Reads the words of the command line, the environment and the file.
    pub(super) fn read(words: &[OsString]) -> anyhow::Result<Self> {
        let words = with_file(words)?;
        let matches = tree().try_get_matches_from(words)?;
        let cli = Cli::from_arg_matches(&matches)?;
        Ok(Self { cli, matches })
    }

    /// The file that gives this request again; `derived` are the values of flags that were left out and that follow
    /// from others.
    pub(super) fn spec(&self, derived: &[(&str, u64)]) -> Result<String, Refused> {
        let mut root = tree();
        root.build();
        let place = Place::of(&root, &self.matches);
        print::toml(&place, derived)
    }
}

/// The word after `--flag`, or the variable of the flag: what can be known where the command line is not understood.
pub(super) fn early(words: &[OsString], flag: &str) -> Option<OsString> {
    let words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).take_while(|word| *word != "--").collect();
    let name = format!("--{flag}");
    let typed = words.iter().enumerate().find_map(|(i, word)| {
        let joined = word.to_str().and_then(|word| word.strip_prefix(&name)?.strip_prefix('=')).map(OsStr::new);
        joined.or_else(|| words.get(i + 1).copied().filter(|_| **word == *name))
    });
    typed.map(ToOwned::to_owned).or_else(|| std::env::var_os(variable(flag)))
}

/// The commands, with a variable of the environment for every flag.
fn tree() -> Command {
    with_variables(Cli::command())
}

fn with_variables(command: Command) -> Command {
    let with_variable = |arg: Arg| {
        let Some(name) = arg.get_long().map(variable) else { return arg };
        let arg = arg.env(name).hide_env(true);
        // In the environment, 1 says yes as well as true does.
        if is_switch(&arg) { arg.value_parser(BoolishValueParser::new()) } else { arg }
    };
    command.mut_args(with_variable).mut_subcommands(with_variables)
}

/// The variable of a flag.
fn variable(flag: &str) -> String {
    format!("LEAKYBINS_{}", flag.replace('-', "_").to_uppercase())
}

/// Whether a flag takes no value.
fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// A command in the tree, and what was said about it.
struct Place<'a> {
    /// Names of the command and its process.
    path: Vec<&'a str>,
    command: &'a Command,
    matches: &'a ArgMatches,
}

impl<'a> Place<'a> {
    /// Where the words led to from `root`, which is built.
    fn of(root: &'a Command, matches: &'a ArgMatches) -> Self {
        let mut place = Self { path: Vec::new(), command: root, matches };
        while let Some((name, matches)) = place.matches.subcommand() {
            let Some(command) = place.command.find_subcommand(name) else { break };
            place.path.push(command.get_name());
            place = Self { command, matches, ..place };
        }
        place
    }

    /// The flags that have a value here, which is a value of the experiment.
    fn flags(&self) -> impl Iterator<Item = (&'a str, &'a Arg)> {
        let valued = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::SetTrue | ArgAction::Append);
        let flags = self.command.get_arguments().filter(valued).filter_map(|arg| Some((arg.get_long()?, arg)));
        flags.filter(|(name, _)| !["spec", "print-spec"].contains(name))
    }

    /// Whether a flag has its value from the command line or the environment.
    fn is_given(&self, arg: &Arg) -> bool {
        let source = self.matches.value_source(arg.get_id().as_str());
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    }
}

/// The words, and behind them what the file says and they and the environment leave open.
fn with_file(words: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let mut words = words.to_vec();
    let mut root = tree();
    root.build();
    let path = early(&words, "spec").filter(|path| !path.is_empty());
    let file = path.map(|path| SpecFile::read(path.as_ref())).transpose()?;
    // Errors are for the reading that counts; this one finds out what is given.
    let lenient = |words: &[OsString]| tree().ignore_errors(true).try_get_matches_from(words);
    let Ok(mut matches) = lenient(&words) else { return Ok(words) };
    let typed = Place::of(&root, &matches);
    if let Some(file) = &file
        && typed.command.has_subcommands()
    {
        // What the words leave open stands behind the command, or behind the program.
        let command = typed.path.first().and_then(|command| words.iter().position(|word| *word == **command));
        let at = command.unwrap_or(0) + 1;
        let missing = file.place(&root, &typed.path)?.split_off(typed.path.len());
        words.splice(at..at, missing.into_iter().map(OsString::from));
        let Ok(again) = lenient(&words) else { return Ok(words) };
        matches = again;
    }
    let place = Place::of(&root, &matches);
    if place.path.is_empty() || place.command.has_subcommands() {
        return Ok(words);
    }
    check_environment(&place)?;
    if let Some(file) = file {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(end..end, file.words(&place)?);
    }
    Ok(words)
}

/// Variables that look like those of flags, and are not.
pub(super) fn unknown_variables() -> Vec<String> {
    /// The tests look for it.
    const OF_TESTS: &str = "LEAKYBINS_REQUIRE_GPU";
    fn is_known(command: &Command, name: &str) -> bool {
        command.get_arguments().any(|arg| arg.get_env().is_some_and(|known| known == name))
            || command.get_subcommands().any(|command| is_known(command, name))
    }
    let tree = tree();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| name.starts_with("LEAKYBINS_") && name != OF_TESTS && !is_known(&tree, name)).collect()
}

/// Refuses values in the environment that flags would refuse, so that the variable is named.
fn check_environment(place: &Place<'_>) -> Result<(), Refused> {
    for (flag, arg) in place.flags() {
        let name = variable(flag);
        if let Some(value) = std::env::var_os(&name) {
            check(arg, &value).map_err(|why| Refused(format!("the variable {name}: {why}")))?;
        }
    }
    Ok(())
}

/// Says why a flag refuses a value.
fn check(arg: &Arg, value: &OsStr) -> Result<(), String> {
    let long = arg.get_long().unwrap_or_default().to_owned();
    let mut alone = Arg::new("value").long(long).value_parser(arg.get_value_parser().clone()).action(ArgAction::Set);
    if let Some(names) = arg.get_value_names() {
        alone = alone.value_names(names);
    }
    let mut word = OsString::from(format!("--{}=", arg.get_long().unwrap_or_default()));
    word.push(value);
    let command = Command::new("leakybins").no_binary_name(true).disable_help_flag(true).arg(alone);
    command.try_get_matches_from([word]).map(drop).map_err(|error| first_paragraph(&error))
}

/// What clap says before its advice, in one line.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let text = lines.join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_a_variable_of_its_name() {
        fn look(command: &Command, seen: &mut usize) {
            for arg in command.get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                let expected = format!("LEAKYBINS_{}", long.to_uppercase().replace('-', "_"));
                assert_eq!(arg.get_env(), Some(OsStr::new(&expected)));
                *seen += 1;
            }
            command.get_subcommands().for_each(|command| look(command, seen));
        }
        let mut seen = 0;
        look(&tree(), &mut seen);
        assert!(seen > 50, "{seen} flags");
    }

    #[test]
    fn early_values_are_found_where_they_stand() {
        let find = |text: &str| {
            let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            early(&words, "some-flag").map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(find("x run --some-flag a --n 3").as_deref(), Some("a"));
        assert_eq!(find("x run --some-flag=a=b").as_deref(), Some("a=b"));
        for text in ["x", "x --some-flag", "x --some-flags a", "x -- --some-flag a"] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
