//! The state of a thread in the system's process table: a file that is read, in some 10 µs.
//!
//! It answers what neither a record nor a clock does: whether a thread that does not run could, and
//! whether it has been stopped from outside. A thread that a debugger or SIGSTOP has stopped has a
//! record like one that blocks, and its clock stands as still.
//!
//! No allocation: the caller may hold a lock that the allocator needs.

use super::{cpu_clock, of};
use crate::presence::Presence;
use crate::presence::switches::real::wiped;
use core::ffi::CStr;
use core::fmt::Write;
use core::sync::atomic::Ordering;

pub(crate) fn examine(index: usize) -> Presence {
    let seen = of(index);
    if matches!(seen, Presence::Running | Presence::Preempted) {
        return seen;
    }
    // Relaxed: a number for the kernel, which knows whether there is such a thread.
    let tid = wiped::existing()
        .and_then(|wiped| wiped.slots.get(index))
        .map_or(0, |slot| slot.tid.load(Ordering::Relaxed));
    if tid == 0 {
        return Presence::Unknown;
    }
    let unread = match seen {
        Presence::Unknown => match cpu_clock::moves(tid) {
            Some(true) => return Presence::Running,
            Some(false) => Presence::Blocked,
            None => Presence::Unknown,
        },
        recorded => recorded,
    };
    // If the table cannot be read, a record is believed, or a clock that stands still. That is the
    // case where there is none, and where the process has no descriptor left.
    state_of(tid).map_or(unread, meaning)
}

/// Interprets a state of the process table, of a thread that does not run at this moment.
fn meaning(state: u8) -> Presence {
    match state {
        // It could run; or it is stopped (`T`) or traced (`t`), and waits for nothing of its own.
        b'R' | b'T' | b't' => Presence::Preempted,
        // Dead, or as good as.
        b'Z' | b'X' | b'x' => Presence::Unknown,
        _ => Presence::Blocked,
    }
}

/// The letter of thread `tid` of this process.
fn state_of(tid: u32) -> Option<u8> {
    let mut path = Text { bytes: [0; 48], length: 0 };
    write!(path, "/proc/self/task/{tid}/stat\0").ok()?;
    let path = CStr::from_bytes_until_nul(&path.bytes).ok()?;
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut text = [0_u8; 512];
    // SAFETY: writes at most as many bytes as there are.
    let length = unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: opened above, and no other code knows it.
    unsafe { libc::close(file) };
    letter(text.get(..usize::try_from(length).ok()?)?)
}

/// The letter behind the name, which is in parentheses and may contain some itself; numbers only
/// follow.
fn letter(stat: &[u8]) -> Option<u8> {
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_ends + 2).copied()
}

/// A short text on the stack.
struct Text {
    /// Room for the text.
    bytes: [u8; 48],
    /// The length of the text.
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let place = self.bytes.get_mut(self.length..self.length + text.len());
        place.ok_or(core::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letter_comes_behind_the_last_parenthesis() {
        assert_eq!(letter(b"12 (cat) S 1 12 12"), Some(b'S'));
        assert_eq!(letter(b"12 (a) R) (b) D 1 12 12"), Some(b'D'));
        assert_eq!(letter(b"12 (cat)"), None);
        assert_eq!(letter(b""), None);
    }

    #[test]
    fn a_stop_is_no_block() {
        for (letters, expected) in [
            (&b"RTt"[..], Presence::Preempted),
            (b"SDIPKW", Presence::Blocked),
            (b"ZXx", Presence::Unknown),
        ] {
            assert!(letters.iter().all(|letter| meaning(*letter) == expected), "{letters:?}");
        }
    }

    #[test]
    fn the_caller_can_run_and_nobody_is_not_there() {
        // SAFETY: a question without pointers.
        let me = unsafe { libc::gettid() } as u32;
        assert_eq!(state_of(me), Some(b'R'));
        assert_eq!(state_of(u32::MAX), None);
    }
}
