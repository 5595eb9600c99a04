//! Reads `/proc/self/maps` and its like, line by line, with system calls and buffers on the stack
//! only.
//!
//! Why not the C library's `open`, `read` and `close`: a thread may be cancelled in each of them.

use core::ffi::CStr;
use core::mem;

use stanchion_competitive::waits::Loss;

use super::{errno, filter, table};

/// The most bytes of a line. A longer path is cut.
const LONGEST: usize = 400;

/// A line of the file: one mapping.
pub(super) struct Mapping<'l> {
    /// The first address.
    pub(super) start: usize,
    /// The address after the last.
    pub(super) end: usize,
    /// True if the memory can be read.
    pub(super) readable: bool,
    /// The offset in the file at which the mapping begins.
    pub(super) offset: usize,
    /// The path of the file. It is empty for memory without a file, and in brackets for the stack
    /// and the like.
    pub(super) path: &'l [u8],
}

/// Calls `each` with one mapping after another, lowest first, until it returns true. Returns false
/// if the file cannot be read. Does not change `errno`.
pub(super) fn visit(mut each: impl FnMut(&Mapping<'_>) -> bool) -> bool {
    let Some(_permit) = filter::permit() else { return false };
    let has_read = errno::kept(|| {
        lines(c"/proc/self/maps", |line| parse(line).is_some_and(|mapping| each(&mapping)))
    });
    if !has_read {
        table::lose(Loss::Mappings);
    }
    has_read
}

/// Calls `each` with one line of a file after another, until it returns true. Returns false if the
/// file cannot be opened, or nothing can be read.
pub(super) fn lines(path: &CStr, mut each: impl FnMut(&[u8]) -> bool) -> bool {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    if file < 0 {
        return false;
    }
    let mut has_read = false;
    let mut buffer = [0_u8; 512];
    let mut line = [0_u8; LONGEST];
    let mut length = 0;
    'file: loop {
        let room = buffer.as_mut_ptr();
        // SAFETY: reads into `buffer`.
        let got = unsafe { libc::syscall(libc::SYS_read, file, room, buffer.len()) };
        let Some(bytes) = usize::try_from(got).ok().and_then(|got| buffer.get(..got)) else {
            break;
        };
        if bytes.is_empty() {
            break;
        }
        has_read = true;
        for &byte in bytes {
            if byte == b'\n' {
                let whole = &line[..mem::take(&mut length)];
                if each(whole) {
                    break 'file;
                }
            } else if let Some(place) = line.get_mut(length) {
                *place = byte;
                length += 1;
            }
        }
    }
    // SAFETY: opened above.
    unsafe { libc::syscall(libc::SYS_close, file) };
    has_read
}

/// Parses a line: `start-end permissions offset device inode path`.
fn parse(line: &[u8]) -> Option<Mapping<'_>> {
    let (range, rest) = word(line)?;
    let dash = range.iter().position(|&byte| byte == b'-')?;
    let (permissions, rest) = word(rest)?;
    let (offset, rest) = word(rest)?;
    let (_device, rest) = word(rest)?;
    let (_inode, rest) = word(rest)?;
    Some(Mapping {
        start: hexadecimal(&range[..dash])?,
        end: hexadecimal(&range[dash + 1..])?,
        readable: permissions.first() == Some(&b'r'),
        offset: hexadecimal(offset)?,
        path: rest.trim_ascii_start(),
    })
}

/// Splits off the first word.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn hexadecimal(text: &[u8]) -> Option<usize> {
    usize::from_str_radix(str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let line = b"7f5c2d3f4000-7f5c2d41a000 r-xp 00026000 fe:00 1234    /usr/lib/a name.so";
        let mapping = parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end), (0x7f5c_2d3f_4000, 0x7f5c_2d41_a000));
        assert_eq!((mapping.readable, mapping.offset), (true, 0x26000));
        assert_eq!(mapping.path, b"/usr/lib/a name.so");
        let nameless = parse(b"1000-2000 ---p 00000000 00:00 0 ").unwrap();
        assert_eq!((nameless.readable, nameless.path), (false, &b""[..]));
        for wrong in ["", "1000", "1000-x ---p 0 0 0", "1000-2000 ---p"] {
            assert!(parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn this_very_code_is_mapped() {
        let code = this_very_code_is_mapped as *const () as usize;
        let mut found = 0;
        visit(|mapping| {
            found += usize::from(
                (mapping.start..mapping.end).contains(&code) && mapping.path.starts_with(b"/"),
            );
            found == 1
        });
        assert_eq!(found, 1);
    }
}
