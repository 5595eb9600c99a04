//! A way to the k-th instruction that does not take k steps.
//!
//! The operation is stepped once, and where each instruction lies is written down. From then on the
//! victim runs to the k-th at full speed: a breakpoint is put there, and if the instruction is in a
//! loop it is passed as often as it was before.
//!
//! The others run the same code, so they must be asleep while a breakpoint is in it, and must find
//! it as it was when they are woken.

use core::mem::MaybeUninit;
use core::ptr;
use std::io;

use libc::{c_long, c_uint, iovec, pid_t, user_regs_struct};

use crate::tracer::Refused;

/// The register set with the program counter.
const GENERAL: usize = 1;

#[cfg(target_arch = "x86_64")]
mod processor {
    /// `int3`, in the lowest byte.
    pub(super) const fn with_breakpoint(word: u64) -> u64 {
        word & !0xFF | 0xCC
    }

    /// The processor has passed the breakpoint when it stops.
    pub(super) const PASSED: u64 = 1;

    pub(super) const fn counter(registers: &mut libc::user_regs_struct) -> &mut u64 {
        &mut registers.rip
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    /// `brk #0`, in the lower half.
    pub(super) const fn with_breakpoint(word: u64) -> u64 {
        word & !0xFFFF_FFFF | 0xD420_0000
    }

    /// The processor stops at the breakpoint.
    pub(super) const PASSED: u64 = 0;

    pub(super) const fn counter(registers: &mut libc::user_regs_struct) -> &mut u64 {
        &mut registers.pc
    }
}

/// A breakpoint in a stopped process, until it is dropped.
pub(crate) struct Breakpoint {
    /// The process that it is set in.
    process: pid_t,
    /// Its address.
    at: u64,
    /// The word that it has replaced.
    before: u64,
}

impl Breakpoint {
    pub(crate) fn put(process: pid_t, at: u64) -> Result<Self, Refused> {
        let before = peek(process, at)?;
        poke(process, at, processor::with_breakpoint(before))?;
        Ok(Self { process, at, before })
    }

    /// Returns whether the process, which has stopped, has stopped here. Then the instruction is
    /// the next to be done, once this is dropped.
    pub(crate) fn is_hit(&self) -> Result<bool, Refused> {
        let mut registers = registers(self.process)?;
        let counter = processor::counter(&mut registers);
        if *counter != self.at + processor::PASSED {
            return Ok(false);
        }
        *counter = self.at;
        let mut vector = vector(&raw mut registers);
        // SAFETY: the request reads the registers, which the vector describes.
        let result = unsafe { ask(libc::PTRACE_SETREGSET, self.process, GENERAL, &raw mut vector) };
        if result == 0 { Ok(true) } else { Err(forbidden()) }
    }
}

impl Drop for Breakpoint {
    fn drop(&mut self) {
        // If that fails the process has ended, and no code is left to be mended.
        let _ = poke(self.process, self.at, self.before);
    }
}

/// Returns the address of the instruction that a stopped process does next.
pub(crate) fn counter(process: pid_t) -> Result<u64, Refused> {
    registers(process).map(|mut registers| *processor::counter(&mut registers))
}

fn registers(process: pid_t) -> Result<user_regs_struct, Refused> {
    let mut registers = MaybeUninit::<user_regs_struct>::zeroed();
    let mut vector = vector(registers.as_mut_ptr());
    // SAFETY: the request writes at most the registers, which the vector describes.
    let result = unsafe { ask(libc::PTRACE_GETREGSET, process, GENERAL, &raw mut vector) };
    if result != 0 {
        return Err(forbidden());
    }
    // SAFETY: they are numbers, of which zero is one.
    Ok(unsafe { registers.assume_init() })
}

fn vector(registers: *mut user_regs_struct) -> iovec {
    iovec { iov_base: registers.cast(), iov_len: size_of::<user_regs_struct>() }
}

fn peek(process: pid_t, at: u64) -> Result<u64, Refused> {
    // SAFETY: the request reads the other process; the C library returns the word.
    let word = unsafe { ask(libc::PTRACE_PEEKTEXT, process, at as usize, ptr::null_mut::<u8>()) };
    // Minus one is an error, and no instruction that we meet.
    if word == -1 { Err(forbidden()) } else { Ok(word as u64) }
}

fn poke(process: pid_t, at: u64, word: u64) -> Result<(), Refused> {
    let word = ptr::without_provenance_mut::<u8>(word as usize);
    // SAFETY: the request writes the other process.
    let result = unsafe { ask(libc::PTRACE_POKETEXT, process, at as usize, word) };
    if result == 0 { Ok(()) } else { Err(forbidden()) }
}

fn forbidden() -> Refused {
    Refused::Forbidden(io::Error::last_os_error())
}

/// # Safety
///
/// What the request says of `data`.
#[allow(clippy::unnecessary_cast)] // The type of a request depends on the C library.
unsafe fn ask<T>(request: c_uint, process: pid_t, address: usize, data: *mut T) -> c_long {
    let address = ptr::without_provenance_mut::<u8>(address);
    // SAFETY: the caller's.
    unsafe { libc::ptrace(request as _, process, address, data) as c_long }
}
