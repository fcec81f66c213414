//! Reading an experiment file.

use super::super::exit::Refused;
use super::{Place, check, is_switch};
use clap::{Arg, ArgAction, Command};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use toml::{Table, Value};

/// Bytes of the largest file that is read.
const MAX_BYTES: u64 = 1 << 16;

/// What a file says.
#[derive(Debug)]
pub(super) struct SpecFile {
    /// Its name in messages.
    name: String,
    command: Option<String>,
    process: Option<String>,
    /// By the name of the flag.
    values: BTreeMap<String, Value>,
}

impl SpecFile {
    /// Reads the file at `path`.
    pub(super) fn read(path: &Path) -> Result<Self, Refused> {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|e| Refused(format!("{name} cannot be read ({e}); give --spec the path of a file in TOML")))?;
        if bytes.len() as u64 > MAX_BYTES {
            let reason = "is longer than 64 KiB (an experiment takes a few lines); give --spec a file in TOML";
            return Err(Refused(format!("{name} {reason}")));
        }
        Self::parse(name, &bytes)
    }

    fn parse(name: String, bytes: &[u8]) -> Result<Self, Refused> {
        let refuse = |why: String| Refused(format!("{name}: {why}"));
        let text = std::str::from_utf8(bytes)
            .map_err(|e| refuse(format!("byte {} is not UTF-8; write the file in UTF-8", e.valid_up_to() + 1)))?;
        let table: Table = text.parse().map_err(|e: toml::de::Error| {
            refuse(format!("this is not TOML; write lines such as lambda = 0.95\n{}", e.to_string().trim_end()))
        })?;
        let mut values = BTreeMap::new();
        for (key, value) in table {
            let flag = key.replace('_', "-");
            if values.insert(flag, value).is_some() {
                return Err(refuse(format!("{key} is given twice, with - and with _; leave one out")));
            }
        }
        let mut text = |key: &str| match values.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(refuse(format!("{key} is {}; write a text such as {key} = \"..\"", kind(&other)))),
        };
        let (command, process) = (text("command")?, text("process")?);
        Ok(Self { name, command, process, values })
    }

    fn refuse(&self, why: impl std::fmt::Display) -> Refused {
        Refused(format!("{}: {why}", self.name))
    }

    /// The command and its process: what is `typed`, else what the file says.
    pub(super) fn place(&self, root: &Command, typed: &[&str]) -> Result<Vec<String>, Refused> {
        let choose = |key: &str, typed: Option<&str>, written: &Option<String>, command: &Command| {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let names = names.join(", ");
            let Some(name) = typed.or(written.as_deref()) else {
                let why = format!("{key} is missing, here and on the command line; add {key} = \"..\", one of {names}");
                return Err(self.refuse(why));
            };
            let unknown = || self.refuse(format!("{key} = \"{name}\" is unknown; use one of {names}"));
            command.get_subcommands().find(|command| command.get_name() == name).cloned().ok_or_else(unknown)
        };
        let command = choose("command", typed.first().copied(), &self.command, root)?;
        let mut path = vec![command.get_name().to_owned()];
        if command.has_subcommands() {
            path.push(choose("process", typed.get(1).copied(), &self.process, &command)?.get_name().to_owned());
        }
        Ok(path)
    }

    /// The words that stand for the values that nothing before the file gives. Every value is checked, also those that
    /// are not needed.
    pub(super) fn words(&self, place: &Place<'_>) -> Result<Vec<OsString>, Refused> {
        for (i, (key, named)) in [("command", &self.command), ("process", &self.process)].into_iter().enumerate() {
            let here = place.path.get(i).copied().unwrap_or("none");
            if let Some(named) = named.as_deref().filter(|named| *named != here) {
                let why = format!(
                    "it is for the {key} {named}, and the command line is for {here}; give that file to {named}, or \
                     leave {key} out of it"
                );
                return Err(self.refuse(why));
            }
        }
        let flags: BTreeMap<&str, &Arg> = place.flags().collect();
        let mut words = Vec::new();
        for (key, value) in &self.values {
            let Some(arg) = flags.get(key.as_str()) else {
                let mut known: Vec<&str> = ["command", "process"].into_iter().chain(flags.keys().copied()).collect();
                known.sort_unstable();
                let why = format!("{key} is no flag of {}; the keys are {}", place.path.join(" "), known.join(", "));
                return Err(self.refuse(why));
            };
            let of_value = words_of(arg, key, value).map_err(|why| self.refuse(format!("{key}: {why}")))?;
            if !place.is_given(arg) {
                words.extend(of_value);
            }
        }
        Ok(words)
    }
}

/// `--key=value`, if the flag takes the value.
fn words_of(arg: &Arg, key: &str, value: &Value) -> Result<Vec<OsString>, String> {
    if is_switch(arg) {
        return match value {
            Value::Boolean(true) => Ok(vec![format!("--{key}").into()]),
            Value::Boolean(false) => Ok(Vec::new()),
            other => Err(format!("this is {}; write true or false", kind(other))),
        };
    }
    let texts = match (value, arg.get_action()) {
        (Value::Array(values), ArgAction::Append) => values.iter().map(scalar).collect::<Result<_, _>>()?,
        // The values of a grid.
        (Value::Array(values), _) => vec![values.iter().map(scalar).collect::<Result<Vec<_>, _>>()?.join(",")],
        (value, _) => vec![scalar(value)?],
    };
    let word = |text: String| {
        check(arg, OsStr::new(&text))?;
        Ok(format!("--{key}={text}").into())
    };
    texts.into_iter().map(word).collect()
}

/// A value as one would type it.
fn scalar(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        // The shortest digits that give the number again, with an exponent where it has many.
        Value::Float(number) => Ok(format!("{number:?}")),
        other => Err(format!("this is {}; write a number or a text", kind(other))),
    }
}

/// A value's type, for people.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;
    use proptest::prelude::*;

    /// The words that a file with `bytes` stands for behind `leakybins run leaky`.
    fn words(bytes: &[u8]) -> Result<Vec<OsString>, Refused> {
        let mut root = tree();
        root.build();
        let file = SpecFile::parse("x.toml".to_owned(), bytes)?;
        let matches = tree().get_matches_from(["leakybins", "run", "leaky"]);
        file.words(&Place::of(&root, &matches))
    }

    #[test]
    fn numbers_and_texts_are_words() {
        for (line, word) in [
            ("n = 1024", "--n=1024"),
            ("n = 1_024", "--n=1024"),
            ("n = 1e6", "--n=1000000.0"),
            ("n = '2^20'", "--n=2^20"),
            ("lambda = 0.1", "--lambda=0.1"),
            ("lambda = 1e-9", "--lambda=1e-9"),
            ("burn_in = 'auto'", "--burn-in=auto"),
            ("burn-in = 5", "--burn-in=5"),
            ("quiet = true", "--quiet"),
        ] {
            assert_eq!(words(line.as_bytes()).expect("a good line"), [word], "{line}");
        }
        assert!(words(b"quiet = false\ncommand = 'run'\nprocess = 'leaky'").expect("good lines").is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = words(&bytes);
        }

        #[test]
        fn no_lines_make_it_panic(text in "([a-z_-]{0,9} ?= ?[-+.0-9a-z'\"\\[\\]{},^#:]{0,12}\n){0,6}") {
            let _ = words(text.as_bytes());
        }

        #[test]
        fn no_value_of_a_known_key_makes_it_panic(
            key in proptest::sample::select(vec!["n", "lambda", "d", "start", "seed", "quiet", "burn_in", "threads"]),
            value in prop_oneof![
                any::<i64>().prop_map(|x| x.to_string()),
                any::<f64>().prop_filter("TOML spells others", |x| x.is_finite()).prop_map(|x| format!("{x:?}")),
                any::<String>().prop_map(|x| Value::String(x).to_string()),
                Just("[1, 'x', [2]]".to_owned()),
                Just("{ a = 1 }".to_owned()),
                Just("1979-05-27".to_owned()),
                Just("nan".to_owned()),
            ],
        ) {
            match words(format!("{key} = {value}").as_bytes()) {
                Ok(words) => prop_assert!(words.len() <= 1),
                Err(Refused(why)) => {
                    let named = why.starts_with(&format!("x.toml: {}: ", key.replace('_', "-")));
                    prop_assert!(named, "{}", why);
                }
            }
        }
    }
}
