//! Lines with checksums.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Most bytes of a line: a tally of a million different loads. Longer ones are neither written nor read.
pub const MAX_LINE: u64 = 1 << 28;

/// What comes before the checksum.
const KEY: &str = ",\"sha256\":\"";
/// What comes after it, without the line feed.
const END: &str = "\"}";
/// Hexadecimal digits of a checksum.
const DIGITS: usize = 64;

/// SHA-256 of the parts one after another, in hexadecimal digits.
pub(super) fn sha256(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hasher = Sha256::new();
    parts.into_iter().for_each(|part| hasher.update(part));
    hasher.finalize().iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a string takes everything");
        digits
    })
}

/// The line of a JSON object, a line feed at its end: its last field is the checksum of `context` and of all before it.
pub(super) fn seal(object: &str, context: &str) -> String {
    let body = object.strip_suffix('}').expect("an object ends with a brace");
    format!("{body}{KEY}{}{END}\n", sha256([context, body]))
}

/// The object of a sealed line without its line feed, without the checksum; `None` where that is wrong.
pub(super) fn open(line: &str, context: &str) -> Option<String> {
    let (body, checksum) = line.strip_suffix(END)?.rsplit_once(KEY)?;
    (checksum.len() == DIGITS && checksum == sha256([context, body])).then(|| format!("{body}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_line_opens_and_no_changed_one_does() {
        let line = seal(r#"{"a":1}"#, "x");
        // The checksum by an independent implementation: printf 'x{"a":1' | sha256sum
        assert_eq!(line, "{\"a\":1,\"sha256\":\"f7a7d92a25c1c92f4cbaa232075eda5ad02eedba7d198167d11a9a9958aaf709\"}\n");
        let line = line.trim_end();
        assert_eq!(open(line, "x").as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(open(line, "y"), None);
        for i in 0..line.len() {
            for bit in 0..7 {
                let mut bytes = line.as_bytes().to_vec();
                bytes[i] ^= 1 << bit;
                assert_eq!(open(&String::from_utf8(bytes).expect("ASCII"), "x"), None, "byte {i}, bit {bit}");
            }
            assert_eq!(open(&line[..i], "x"), None);
        }
    }
}
