//! The handler: is this fault the overflow of a stack of ours? If so, the handler names the thread
//! and the process ends. If not, the fault is handled as if we were not there.
//!
//! A fault that is not ours goes to the action that was there before:
//!
//! - A handler, with `SA_SIGINFO` or without, is called with the same arguments, under its own mask
//!   and flags. If it has `SA_RESETHAND`, it is called once.
//! - For `SIG_DFL`, or a handler with `SA_RESETHAND` that was called, the default is restored and
//!   the instruction runs again. That ends the process at the right place. A signal that was sent
//!   is sent again.
//! - For `SIG_IGN`, a signal that was sent is ignored. The kernel does not ignore a fault, so a
//!   fault is treated as with `SIG_DFL`.
//!
//! One thing differs: a handler without `SA_ONSTACK` runs on the thread's alternate stack, as ours
//! does.
//!
//! Installed once. Otherwise a handler that was installed after ours and passes faults on to ours
//! would become the former action of ours: the two would call each other for ever.
//!
//! # Invariants
//!
//! 1. The former action of a signal is in `BEFORE` when our handler is installed for it, and stays
//!    there.
//! 2. The handler does what a handler may: loads, stores, `write`, `sigaction`, `abort`.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::boxed::Box;

use super::alternate::Alternate;
use super::line::Line;
use super::once::Once;
use super::refusal::failed;
use super::table::{Place, find};
use crate::stack::{Head, StackError};

const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The action that was there before ours, for each of [`SIGNALS`].
static BEFORE: [Before; 2] = [const { Before::new() }; 2];

struct Before {
    /// The action; null until our handler is installed.
    action: AtomicPtr<libc::sigaction>,
    /// It was to be called once, and has been.
    spent: AtomicBool,
}

impl Before {
    const fn new() -> Self {
        Self { action: AtomicPtr::new(ptr::null_mut()), spent: AtomicBool::new(false) }
    }

    /// Returns the action, if it was kept.
    fn kept(&self) -> Option<&'static libc::sigaction> {
        // Acquire: pairs with the Release in `keep`. SAFETY: Invariant 1: whole and never freed.
        unsafe { self.action.load(Ordering::Acquire).as_ref() }
    }

    /// Keeps it for as long as the process lives.
    fn keep(&self, action: libc::sigaction) {
        // Release pairs with the Acquire in `kept`.
        self.action.store(Box::into_raw(Box::new(action)), Ordering::Release);
    }
}

/// Held by a thread as long as its overflows are reported.
#[derive(Debug)]
pub(crate) struct Watched(
    #[expect(dead_code, reason = "held until the thread is not watched any more")] Alternate,
);

pub(crate) fn watch() -> Result<Watched, StackError> {
    static INSTALLED: Once = Once::new();
    INSTALLED.run(install)?;
    Alternate::ensure().map(Watched)
}

fn install() -> Result<(), StackError> {
    for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
        let there = action(signal, ptr::null())?;
        match before.kept() {
            // Invariant 1.
            None => before.keep(there),
            // An attempt that failed, or a parent that forked, came as far as here.
            Some(kept) if is_same(kept, &there) => {}
            Some(_) => continue,
        }
        let ours = libc::sigaction {
            sa_sigaction: handle as *const () as usize,
            sa_flags: flags(&there),
            ..there
        };
        let replaced = action(signal, &raw const ours)?;
        if !is_same(&replaced, &there) {
            // Another thread has changed the action since it was read.
            before.keep(replaced);
        }
    }
    Ok(())
}

fn is_same(one: &libc::sigaction, other: &libc::sigaction) -> bool {
    one.sa_sigaction == other.sa_sigaction && one.sa_flags == other.sa_flags
}

/// Changes what a signal does, unless `to` is null; says what it did.
fn action(signal: i32, to: *const libc::sigaction) -> Result<libc::sigaction, StackError> {
    // SAFETY: all zeroes is a valid `sigaction`.
    let mut there: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: `there` is writable, and `to` is null or whole, with a handler that does what a
    // handler may (Invariant 2).
    if unsafe { libc::sigaction(signal, to, &raw mut there) } != 0 {
        return Err(failed("sigaction"));
    }
    Ok(there)
}

/// Returns the flags of our handler, so that the former handler finds all as it would have been.
fn flags(there: &libc::sigaction) -> i32 {
    let kept = match there.sa_sigaction {
        // A signal without a handler interrupts no system call.
        libc::SIG_DFL | libc::SIG_IGN => libc::SA_RESTART,
        _ => there.sa_flags & (libc::SA_RESTART | libc::SA_NODEFER),
    };
    libc::SA_SIGINFO | libc::SA_ONSTACK | kept
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes it to a handler with `SA_SIGINFO`; so does a handler that passes on
    // what it got.
    let Some(what) = (unsafe { info.as_ref() }) else { return };
    let is_fault = what.si_code > 0;
    if is_fault {
        // SAFETY: a fault of one of these signals has an address.
        let address = unsafe { what.si_addr() }.addr();
        find(address, |place| report(place, address, stack_pointer(context)));
    }
    pass_on(signal, info, context, is_fault);
}

/// The most bytes below the stack pointer that a frame may reach before the pointer is moved:
/// probes go page by page, and the kernel once granted as much.
const REACH: usize = 64 << 10;

/// Ends the process if that is an overflow; returns if it is another's business.
fn report(place: &Place, address: usize, stack_pointer: Option<usize>) {
    if !place.is_guard() {
        return;
    }
    let mut bytes = [0; Head::MOST];
    let (length, cut) = place.head().get(&mut bytes);
    let name = if length == 0 { "<unnamed>".as_bytes() } else { &bytes[..length] };
    let mut line = Line::new();
    let overflow = stack_pointer
        .is_none_or(|pointer| place.is_beside(pointer) && address.saturating_add(REACH) >= pointer);
    if !overflow {
        line.text("\na thread has touched address 0x").hexadecimal(address);
        line.text(", which is in the guard below the stack of thread '").bytes(name);
        line.text("' but not near its own stack pointer: a wild pointer, or a frame larger than the guard of ");
        line.decimal(place.size.guard() >> 10).text(" KiB\n").write();
        return;
    }
    line.text("\nthread '").bytes(name).text(if cut { "…" } else { "" });
    line.text("' has overflowed its stack of ").decimal(place.size.bytes() >> 10).text(" KiB");
    if !place.advice.is_empty() {
        line.text(" (").text(place.advice).text(")");
    }
    line.text("\nfatal runtime error: stack overflow, aborting\n").write();
    // SAFETY: ends the process, and may be called in a handler.
    unsafe { libc::abort() };
}

/// Does with the signal what would have been done without us.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void, is_fault: bool) {
    let which = SIGNALS.iter().position(|one| *one == signal);
    let Some(before) = which.map(|which| &BEFORE[which]) else { return };
    let Some(action) = before.kept() else {
        return default(signal, is_fault);
    };
    match action.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => default(signal, is_fault),
        // Relaxed: exactly one of the threads that exchange it is the first.
        _ if action.sa_flags & libc::SA_RESETHAND != 0
            && before.spent.swap(true, Ordering::Relaxed) =>
        {
            default(signal, is_fault);
        }
        handler if action.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the code that installed it with this flag said that it is such a function.
            let handler = unsafe {
                core::mem::transmute::<usize, extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void)>(
                    handler,
                )
            };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the code that installed it without the flag said that it is such a function.
            let handler = unsafe { core::mem::transmute::<usize, extern "C" fn(i32)>(handler) };
            handler(signal);
        }
    }
}

/// The default action, which ends the process: by the instruction that faulted, when it runs again;
/// by the signal, if it was sent.
fn default(signal: i32, is_fault: bool) {
    // SAFETY: all zeroes is the default action.
    let action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: `action` is whole.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    if !is_fault {
        // Delivered when this handler has returned.
        // SAFETY: sends a signal to this thread; the signal has its default action.
        unsafe { libc::raise(signal) };
    }
}

/// Where the stack of the interrupted code ended; not known everywhere.
fn stack_pointer(context: *mut c_void) -> Option<usize> {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
    ))]
    {
        let context = context.cast::<libc::ucontext_t>();
        // SAFETY: the kernel passes it to a handler with `SA_SIGINFO`; so does a handler that
        // passes on what it got.
        let context = unsafe { context.as_ref() }?;
        let registers = &context.uc_mcontext;
        #[cfg(target_arch = "x86_64")]
        let pointer = registers.gregs[libc::REG_RSP as usize] as usize;
        #[cfg(target_arch = "aarch64")]
        let pointer = registers.sp as usize;
        #[cfg(target_arch = "riscv64")]
        let pointer = registers.__gregs[libc::REG_SP as usize] as usize;
        Some(pointer)
    }
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
    )))]
    {
        let _ = context;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours(action: &libc::sigaction) -> bool {
        action.sa_sigaction == handle as *const () as usize
    }

    #[test]
    fn an_installation_that_is_begun_again_goes_on_where_it_stopped() {
        let _watched = watch().unwrap();
        let (signal, before) = (libc::SIGBUS, &BEFORE[1]);
        let kept = before.kept().unwrap();
        install().unwrap();
        assert!(ptr::eq(before.kept().unwrap(), kept), "ours is not its own former action");
        assert!(is_ours(&action(signal, ptr::null()).unwrap()));
        // As in a child that was forked after its parent had kept the action.
        action(signal, kept).unwrap();
        install().unwrap();
        assert!(ptr::eq(before.kept().unwrap(), kept));
        assert!(is_ours(&action(signal, ptr::null()).unwrap()));
    }
}
