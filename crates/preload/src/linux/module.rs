//! The modules of the process, as the loader knows them: found without a system call or a lock.

use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::ops::Range;

use stanchion_machine::atomic::{AtomicU8, AtomicUsize, Ordering};

use super::real::{self, Found};

/// The most bytes of the path of the program.
const LONGEST: usize = 256;

/// The path of the program, of which the loader has none. `begin` writes it.
static PROGRAM: [AtomicU8; LONGEST] = [const { AtomicU8::new(0) }; LONGEST];
/// The length of that path, written after it; 0 if it is not known or too long.
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// The public part of the loader's record of a module (`struct link_map`).
#[repr(C)]
struct LinkMap {
    /// The difference between addresses in the file and in memory.
    difference: usize,
    /// The path of the file; empty for the program.
    name: *const c_char,
}

/// A module.
pub(super) struct Module {
    /// Its addresses.
    pub(super) range: Range<usize>,
    /// The loader's record.
    map: *const LinkMap,
}

/// Finds the path of the program, before `main`.
pub(super) fn begin() {
    let mut path = [0_u8; LONGEST];
    let room = path.as_mut_ptr().cast();
    // SAFETY: writes at most as many bytes as `path` has.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), room, LONGEST) };
    let Some(length) = usize::try_from(length).ok().filter(|&length| length < LONGEST) else {
        return;
    };
    for (to, from) in PROGRAM.iter().zip(&path[..length]) {
        to.store(*from, Ordering::Relaxed);
    }
    // Release: pairs with the Acquire of `with_path`.
    LENGTH.store(length, Ordering::Release);
}

/// Returns the module that contains the address.
pub(super) fn of(address: usize) -> Option<Module> {
    let find = real::find_object()?;
    let mut found = MaybeUninit::<Found>::zeroed();
    // SAFETY: the C library's function, which writes to `found` and waits for nothing.
    if unsafe { find(address as *const c_void, found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: zeros are a value of each field, and the function wrote the others.
    let found = unsafe { found.assume_init() };
    let range = found.start.addr()..found.end.addr();
    let is_inside = range.contains(&address) && !found.map.is_null();
    is_inside.then_some(Module { range, map: found.map.cast() })
}

impl Module {
    /// Calls `with` with the path of the module's file, if it is known.
    pub(super) fn with_path<R>(&self, with: impl FnOnce(&[u8]) -> R) -> Option<R> {
        // SAFETY: the loader's record of a module. It stays: it has the lock or the caller.
        let name = unsafe { (*self.map).name };
        if name.is_null() {
            return None;
        }
        // SAFETY: the loader's names end with a zero, and stay with their module.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        if !name.is_empty() {
            return (name[0] == b'/').then(|| with(name));
        }
        // Acquire: pairs with the Release of `begin`.
        let length = LENGTH.load(Ordering::Acquire);
        let mut path = [0_u8; LONGEST];
        for (to, from) in path.iter_mut().zip(&PROGRAM) {
            *to = from.load(Ordering::Relaxed);
        }
        (length > 0).then(|| with(&path[..length]))
    }
}
