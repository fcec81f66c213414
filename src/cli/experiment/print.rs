//! Writing an experiment file.

use super::super::exit::Refused;
use super::{Place, is_switch};
use crate::report::wrapped;
use clap::{Arg, ArgAction};
use std::fmt::Write;
use toml::Value;

/// The file that stands for what was said at `place`. A flag without a value has it from `derived`, or is named in a
/// comment.
pub(super) fn toml(place: &Place<'_>, derived: &[(&str, u64)]) -> Result<String, Refused> {
    let mut text = String::new();
    for (key, name) in ["command", "process"].into_iter().zip(&place.path) {
        line(&mut text, key, &Value::from(*name).to_string());
    }
    let mut unset = Vec::new();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for (_, arg) in place.flags() {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    // The process's own parameters have no heading and come first, as in the help.
    headings.sort_by_key(Option::is_some);
    for heading in headings {
        let mut section = String::new();
        for (flag, arg) in place.flags().filter(|(_, arg)| arg.get_help_heading() == heading) {
            let follows =
                || derived.iter().find(|(name, _)| *name == flag).map(|(_, value)| scalar(&value.to_string()));
            match given(place, flag, arg)?.or_else(follows) {
                Some(value) => line(&mut section, flag, &value),
                None => unset.push(flag),
            }
        }
        if !section.is_empty() {
            text += &format!("\n# {}\n{section}", heading.unwrap_or("Parameters"));
        }
    }
    if !unset.is_empty() {
        let heading = "# Without a value: ";
        let names = wrapped(unset.into_iter(), ", ", heading.len());
        text += &format!("\n{heading}{}\n", names.replace("\n ", "\n#"));
    }
    Ok(text)
}

fn line(text: &mut String, key: &str, value: &str) {
    writeln!(text, "{key} = {value}").expect("a string takes everything");
}

/// The value of a flag, defaults included.
fn given(place: &Place<'_>, flag: &str, arg: &Arg) -> Result<Option<String>, Refused> {
    let id = arg.get_id().as_str();
    if is_switch(arg) {
        return Ok(Some(place.matches.get_flag(id).to_string()));
    }
    let Some(raw) = place.matches.get_raw(id) else { return Ok(None) };
    let texts: Option<Vec<String>> = raw.map(|text| text.to_str().map(scalar)).collect();
    let texts = texts.ok_or_else(|| {
        Refused(format!("the value of --{flag} is not UTF-8, and TOML cannot hold it; use another name"))
    })?;
    Ok(match arg.get_action() {
        ArgAction::Append => Some(format!("[{}]", texts.join(", "))),
        _ => texts.into_iter().next_back(),
    })
}

/// `text` as a number where TOML gives the same text again, as a text otherwise.
fn scalar(text: &str) -> String {
    let whole = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    let decimal = text.parse::<f64>().is_ok_and(|number| number.is_finite() && format!("{number:?}") == text);
    if whole || decimal { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::scalar;

    #[test]
    fn texts_that_a_number_would_change_stay_texts() {
        for (text, toml) in [
            ("1024", "1024"),
            ("0.95", "0.95"),
            ("1e-9", "1e-9"),
            ("1e6", "\"1e6\""),
            ("007", "\"007\""),
            ("0.10", "\"0.10\""),
            ("2^20", "\"2^20\""),
            ("18446744073709551615", "\"18446744073709551615\""),
            ("NaN", "\"NaN\""),
            ("each:3", "\"each:3\""),
        ] {
            assert_eq!(scalar(text), toml);
        }
    }
}
