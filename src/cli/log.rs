//! Messages on standard error, as flags.
//!
//! For people a message is its text. For programs (`--log-format json`) every line is an object, and `kind` says of
//! which sort:
//!
//! | `kind` | fields |
//! |---|---|
//! | `log` | `time` (UTC), `level`, `message`, and what the message is made of, by name |
//! | `progress` | see [`super::progress`] |
//! | `error` | `exit` (name of the exit code), `message`, `exit_code`; the last line |

use super::exit::Exit;
use super::progress::beside_the_bar;
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{self, Layer, SubscriberExt};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Messages")]
pub(super) struct Messages {
    /// Least important messages that are shown
    #[arg(long, global = true, value_name = "LEVEL", value_enum, default_value_t)]
    log: Least,
    /// Form of messages and errors on standard error
    #[arg(long, global = true, value_enum, default_value_t)]
    log_format: Form,
}

/// The least important messages that are shown.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Least {
    /// Only the reason why there is no result
    Error,
    /// Reasons to distrust a result, lost devices
    Warn,
    /// Backend, fresh seed, burn-in that was found
    #[default]
    Info,
    /// Blocks and looks at the rules for stopping
    Debug,
}

/// The form of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// For people
    #[default]
    Text,
    /// For programs: an object a line
    Json,
}

/// The form that the process uses.
static FORM: OnceLock<Form> = OnceLock::new();

impl Form {
    /// Makes it the form of this process, if none is chosen yet.
    pub(super) fn choose(self) {
        FORM.get_or_init(|| self);
    }

    /// The form of this process.
    pub(super) fn chosen() -> Self {
        FORM.get().copied().unwrap_or_default()
    }
}

impl Messages {
    /// Shows messages from now on.
    pub(super) fn start(&self) -> anyhow::Result<()> {
        self.log_format.choose();
        let least = match self.log {
            Least::Error => LevelFilter::ERROR,
            Least::Warn => LevelFilter::WARN,
            Least::Info => LevelFilter::INFO,
            Least::Debug => LevelFilter::DEBUG,
        };
        let subscriber = tracing_subscriber::registry().with(least).with(Lines);
        tracing::subscriber::set_global_default(subscriber).context("messages are shown already")
    }
}

/// Says on standard error why a command failed.
pub(super) fn fail(message: &str, exit: Exit) {
    match Form::chosen() {
        Form::Text => line(&format!("error: {message}")),
        Form::Json => object(&json!({
            "kind": "error", "exit": exit.name(), "message": message, "exit_code": exit as u8,
        })),
    }
}

/// Writes a line of JSON to standard error.
pub(super) fn object(value: &Value) {
    line(&value.to_string());
}

/// Writes a line to standard error. Nobody listening is no reason to fail.
fn line(text: &str) {
    beside_the_bar(|| {
        let _ = writeln!(io::stderr(), "{text}");
    });
}

/// Writes every message as a line.
struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = *event.metadata().level();
        let Fields { message, others } = fields;
        match Form::chosen() {
            Form::Text => line(&format!("{}{message}", prefix(level))),
            Form::Json => {
                let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
                let level = level.as_str().to_lowercase();
                let mut all = json!({"kind": "log", "time": time, "level": level, "message": message});
                all.as_object_mut().expect("it is one").extend(others);
                object(&all);
            }
        }
    }
}

/// How a line for people begins.
fn prefix(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error: ",
        Level::WARN => "warning: ",
        Level::INFO => "",
        _ => "debug: ",
    }
}

/// What an event carries.
#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.others.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" { self.message = text } else { self.put(field, text) }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }
}
