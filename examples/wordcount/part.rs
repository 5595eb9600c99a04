//! Parts of a file, each of which one task reads and counts: no word is in two parts, and none is
//! in no part.
//!
//! ```text
//! bytes     t h e   t u r t l e   a n d   t h e   h a r e
//! cuts                    |                 |
//! parts     t h e   t u r t l e
//!                               . a n d . t h e
//!                                               . h a r e
//! ```
//!
//! Words are letters and digits, and a space is none of them in any text of UTF-8. So cutting at
//! spaces cuts no word and no letter.

use super::fault::{Fault, LONGEST};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;

/// Bytes of a part.
pub const PART: u64 = 1 << 20;

/// The parts of a file of `length` bytes: at least one, of `part` bytes each.
pub fn parts(length: u64, part: u64) -> impl ExactSizeIterator<Item = Range<u64>> {
    let number = length.div_ceil(part).max(1) as usize;
    // The last may go on behind the end: files grow, and those of /proc claim to be empty.
    (0..number).map(move |which| which as u64 * part..(which as u64 + 1) * part)
}

/// Reads the bytes that belong to a part of `file`. Returns the number of the first as well.
///
/// # Errors
///
/// [`Fault`], also if there is no space where the part looks for one.
pub fn read(file: &mut (impl Read + Seek), part: Range<u64>) -> Result<(u64, Vec<u8>), Fault> {
    // One byte before tells whether the first belongs to a word before.
    let from = part.start.saturating_sub(1);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    let wanted = part.end - from;
    let read = file.take(wanted).read_to_end(&mut bytes)? as u64;
    if part.start > 0 {
        match bytes.iter().position(u8::is_ascii_whitespace) {
            // A space before the first byte is the last of the part before; a later one ends a word
            // that began there.
            Some(space) => drop(bytes.drain(..space.max(1))),
            // All of it belongs to a word that begins before. The part with that word reads on, and
            // finds whether it is too long.
            None => return Ok((part.end, Vec::new())),
        }
    }
    let first = from + read - bytes.len() as u64;
    let after = bytes.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    if read == wanted && after < bytes.len() {
        finish(file, &mut bytes, first + after as u64)?;
    }
    Ok((first, bytes))
}

/// Reads on to the first space after `bytes`. Their last word begins at byte `word` of the file.
fn finish(file: &mut impl Read, bytes: &mut Vec<u8>, word: u64) -> Result<(), Fault> {
    let mut block = [0; 4096];
    let mut more = 0;
    while more <= LONGEST {
        let read = match file.read(&mut block) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read?,
        };
        let space = block[..read].iter().position(u8::is_ascii_whitespace);
        let mine = space.unwrap_or(read);
        bytes.extend(&block[..mine]);
        more += mine;
        if read == 0 || space.is_some() {
            return Ok(());
        }
    }
    Err(Fault::Spaceless(word))
}
