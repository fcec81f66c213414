//! Several journals as one.

use super::{Contents, Header, JournalError, Subject};

/// Several journals of one run as one.
#[derive(Clone, Debug)]
pub struct Merged<S: Subject = Header> {
    /// The one journal.
    pub contents: Contents<S>,
    /// Blocks that were in more than one of them, counted each time but the first.
    pub repeated: usize,
}

/// The union of `journals`, or nothing if there are none.
///
/// Its [bytes](Contents::lines) do not depend on the order of the journals, nor on what was merged before: blocks are
/// sorted, and of several headers of one run, or several lines of one block with the same tally, the smallest in bytes
/// is taken.
///
/// # Errors
/// [`JournalError::Differs`] where they are not all of one run; [`JournalError::Conflict`] where the tallies of a block
/// differ, [`JournalError::Computed`] where another part of the header that is computed does.
pub fn merge<S: Subject>(journals: impl IntoIterator<Item = Contents<S>>) -> Result<Option<Merged<S>>, JournalError> {
    let mut journals = journals.into_iter();
    let Some(contents) = journals.next() else { return Ok(None) };
    let mut merged = Merged { contents, repeated: 0 };
    for journal in journals {
        let all = &mut merged.contents;
        journal.require(&all.header)?;
        if journal.header_line < all.header_line {
            (all.header, all.header_line) = (journal.header, journal.header_line);
        }
        all.torn |= journal.torn;
        for stored in journal.entries.into_values() {
            merged.repeated += usize::from(all.insert(stored, &journal.name)?);
        }
    }
    Ok(Some(merged))
}
