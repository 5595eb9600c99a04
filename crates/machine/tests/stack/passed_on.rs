//! Tests that other faults are handled as if this crate's handler did not exist.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

use stanchion_machine::stack::{guards, watch};

use super::{on, slab, taken};
use stanchion_alone::{alone, end};

/// Reads from an address in the first page, where nothing is mapped.
fn read_nothing() {
    // SAFETY: this is not safe: it faults and ends the process.
    black_box(unsafe { ptr::without_provenance::<u8>(8).read_volatile() });
}

fn set(signal: i32, handler: usize, flags: i32) {
    // SAFETY: zeros are a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: the action is initialized.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }, 0);
}

fn send(signal: i32) {
    // SAFETY: sends a signal to this thread.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

fn leave(code: i32) {
    // SAFETY: ends the process; a handler may call it.
    unsafe { libc::_exit(code) };
}

fn say(text: &str) {
    // SAFETY: the bytes are readable; a handler may call it.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// Exits with a code that says whether the arguments were right.
extern "C" fn with_information(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: a handler with `SA_SIGINFO` gets a valid pointer.
    let info = unsafe { &*info };
    // SAFETY: a fault has an address.
    let address = unsafe { info.si_addr() }.addr();
    let right = signal == libc::SIGSEGV && info.si_signo == signal && address == 8;
    leave(if right && !context.is_null() { 42 } else { 1 });
}

extern "C" fn without_information(signal: i32) {
    leave(if signal == libc::SIGSEGV { 43 } else { 1 });
}

extern "C" fn once(_: i32) {
    say("once\n");
}

#[test]
fn a_null_pointer_ends_the_process_by_the_signal() {
    let Some(end) = end("passed_on::a_null_pointer_ends_the_process_by_the_signal", || {
        let _watched = watch().unwrap();
        read_nothing();
    }) else {
        return;
    };
    end.by_signal(libc::SIGSEGV).not_saying("overflow").not_saying("wild");
}

#[test]
fn a_null_pointer_on_a_stack_of_ours_ends_the_process_by_the_signal() {
    let Some(end) =
        end("passed_on::a_null_pointer_on_a_stack_of_ours_ends_the_process_by_the_signal", || {
            let _watched = watch().unwrap();
            on(taken(&mut slab(1, guards())), read_nothing);
        })
    else {
        return;
    };
    end.by_signal(libc::SIGSEGV).not_saying("overflow").not_saying("wild");
}

#[test]
fn the_default_of_who_had_no_handler_is_kept() {
    let Some(end) = end("passed_on::the_default_of_who_had_no_handler_is_kept", || {
        set(libc::SIGSEGV, libc::SIG_DFL, 0);
        let _watched = watch().unwrap();
        read_nothing();
    }) else {
        return;
    };
    end.by_signal(libc::SIGSEGV);
}

#[test]
fn a_violation_that_was_sent_ends_the_process_as_it_would() {
    let Some(end) =
        end("passed_on::a_violation_that_was_sent_ends_the_process_as_it_would", || {
            set(libc::SIGSEGV, libc::SIG_DFL, 0);
            let _watched = watch().unwrap();
            send(libc::SIGSEGV);
        })
    else {
        return;
    };
    end.by_signal(libc::SIGSEGV);
}

#[test]
fn a_bus_error_that_was_sent_ends_the_process_as_it_would() {
    let Some(end) =
        end("passed_on::a_bus_error_that_was_sent_ends_the_process_as_it_would", || {
            set(libc::SIGBUS, libc::SIG_DFL, 0);
            let _watched = watch().unwrap();
            send(libc::SIGBUS);
        })
    else {
        return;
    };
    end.by_signal(libc::SIGBUS);
}

#[test]
fn a_signal_that_was_ignored_is_ignored_and_a_fault_is_not() {
    let Some(end) =
        end("passed_on::a_signal_that_was_ignored_is_ignored_and_a_fault_is_not", || {
            set(libc::SIGSEGV, libc::SIG_IGN, 0);
            let _watched = watch().unwrap();
            send(libc::SIGSEGV);
            say("still here\n");
            read_nothing();
        })
    else {
        return;
    };
    end.by_signal(libc::SIGSEGV).saying("still here");
}

#[test]
fn a_handler_with_information_gets_what_it_would() {
    let Some(end) = end("passed_on::a_handler_with_information_gets_what_it_would", || {
        set(libc::SIGSEGV, with_information as *const () as usize, libc::SA_SIGINFO);
        let _watched = watch().unwrap();
        read_nothing();
    }) else {
        return;
    };
    end.with_code(42);
}

#[test]
fn a_handler_without_information_is_called() {
    let Some(end) = end("passed_on::a_handler_without_information_is_called", || {
        set(libc::SIGSEGV, without_information as *const () as usize, 0);
        let _watched = watch().unwrap();
        read_nothing();
    }) else {
        return;
    };
    end.with_code(43);
}

#[test]
fn a_handler_that_is_called_once_is_called_once() {
    let Some(end) = end("passed_on::a_handler_that_is_called_once_is_called_once", || {
        set(libc::SIGSEGV, once as *const () as usize, libc::SA_RESETHAND);
        let _watched = watch().unwrap();
        read_nothing();
    }) else {
        return;
    };
    end.by_signal(libc::SIGSEGV);
    assert_eq!(end.err.matches("once").count(), 1, "{}", end.err);
}

/// Installs a handler later, which passes faults on that it does not know.
#[test]
fn a_handler_that_comes_later_may_pass_on_to_ours() {
    static mut OURS: Option<libc::sigaction> = None;
    extern "C" fn later(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
        say("later\n");
        // SAFETY: written before this handler was installed.
        let ours = unsafe { OURS }.unwrap();
        // SAFETY: this crate's handler has this signature.
        let ours = unsafe {
            std::mem::transmute::<usize, extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void)>(
                ours.sa_sigaction,
            )
        };
        ours(signal, info, context);
    }
    let Some(end) = end("passed_on::a_handler_that_comes_later_may_pass_on_to_ours", || {
        let _watched = watch().unwrap();
        // SAFETY: zeros are a valid action.
        let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the call only writes to `ours`.
        unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), &raw mut ours) };
        // SAFETY: no other thread reads it yet.
        unsafe { OURS = Some(ours) };
        let flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        set(libc::SIGSEGV, later as *const () as usize, flags);
        let again = watch().unwrap();
        let stack = taken(&mut slab(1, guards()));
        stack.set_name(Some("deep"));
        on(stack, || super::overflow::descend(1 << 40));
        drop(again);
    }) else {
        return;
    };
    end.by_signal(libc::SIGABRT).saying("later\n").saying("thread 'deep' has overflowed");
}

/// A handler that mends the fault continues to do so: here by making the page that was touched
/// accessible.
#[test]
fn a_handler_that_mends_what_was_wrong_is_called_each_time() {
    extern "C" fn mend(_: i32, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: a handler with `SA_SIGINFO` gets a valid pointer.
        let info = unsafe { &*info };
        // SAFETY: a fault has an address.
        let page = unsafe { info.si_addr() }.map_addr(|address| address & !4095);
        say("mended\n");
        // SAFETY: the page belongs to the test.
        let done = unsafe { libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE) };
        if done != 0 {
            leave(1);
        }
    }
    alone("passed_on::a_handler_that_mends_what_was_wrong_is_called_each_time", || {
        set(libc::SIGSEGV, mend as *const () as usize, libc::SA_SIGINFO);
        let _watched = watch().unwrap();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        // SAFETY: a new mapping.
        let pages = unsafe { libc::mmap(ptr::null_mut(), 3 << 16, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(pages, libc::MAP_FAILED);
        for page in 0..3 {
            // SAFETY: the offset is in the mapping.
            let place = unsafe { pages.cast::<u8>().add(page << 16) };
            // SAFETY: the handler makes it writable.
            unsafe { place.write_volatile(7) };
            // SAFETY: written just now.
            assert_eq!(unsafe { place.read_volatile() }, 7);
        }
    });
}
