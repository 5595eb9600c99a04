//! Tests of the report of an overflow, and of how the process ends.

use std::hint::black_box;
use std::ptr;
use std::thread;

use stanchion_machine::stack::{Guards, NAME, guards, watch};

use super::{ADVICE, on, slab, taken};
use stanchion_alone::end;

/// Recurses so deep that the stack overflows if `depth` is large.
pub(crate) fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    if depth == 0 { 0 } else { descend(black_box(depth - 1)) + frame[31] }
}

const TOO_DEEP: u64 = 1 << 40;

fn overflows(guards: Guards, name: Option<&str>) {
    let _watched = watch().unwrap();
    let stack = taken(&mut slab(4, guards));
    stack.set_name(name);
    on(stack, || descend(TOO_DEEP));
}

#[test]
fn an_overflow_is_told_by_name() {
    let Some(end) = end("overflow::an_overflow_is_told_by_name", || {
        overflows(guards(), Some("sorter of parcels"));
    }) else {
        return;
    };
    let text =
        format!("thread 'sorter of parcels' has overflowed its stack of 32 KiB ({ADVICE})\n");
    end.by_signal(libc::SIGABRT).saying(&text);
}

#[test]
fn an_overflow_is_told_by_name_where_guards_are_protected() {
    let Some(end) = end("overflow::an_overflow_is_told_by_name_where_guards_are_protected", || {
        overflows(Guards::Protected, Some("sorter of parcels"));
    }) else {
        return;
    };
    end.by_signal(libc::SIGABRT)
        .saying("thread 'sorter of parcels' has overflowed its stack of 32 KiB");
}

#[test]
fn an_overflow_without_a_name_is_told() {
    let Some(end) =
        end("overflow::an_overflow_without_a_name_is_told", || overflows(guards(), None))
    else {
        return;
    };
    end.by_signal(libc::SIGABRT).saying("thread '<unnamed>' has overflowed its stack of 32 KiB");
}

#[test]
fn a_long_name_is_cut() {
    let name = "n".repeat(NAME + 1);
    let Some(end) = end("overflow::a_long_name_is_cut", || overflows(guards(), Some(&name))) else {
        return;
    };
    end.by_signal(libc::SIGABRT).saying(&format!("thread '{}…' has", "n".repeat(NAME)));
}

/// The stacks above and below have names too, and so do those of slabs that are gone.
#[test]
fn the_name_is_that_of_the_stack_among_many_slabs() {
    let Some(end) = end("overflow::the_name_is_that_of_the_stack_among_many_slabs", || {
        let _watched = watch().unwrap();
        let mut slabs: Vec<_> = (0..200).map(|_| slab(3, guards())).collect();
        for gone in [150, 70, 3] {
            slabs.remove(gone);
        }
        let mut stacks = Vec::new();
        for (number, slab) in slabs.iter_mut().enumerate() {
            for place in 0..3 {
                let stack = taken(slab);
                stack.set_name(Some(&format!("{place} of {number}")));
                stacks.push(stack);
            }
        }
        let stack = stacks.remove(3 * 190 + 1);
        on(stack, || descend(TOO_DEEP));
    }) else {
        return;
    };
    end.by_signal(libc::SIGABRT).saying("thread '1 of 190' has overflowed");
}

/// The thread has no signal stack, as threads that a C program starts.
#[test]
fn a_thread_without_a_signal_stack_gets_one() {
    extern "C" fn body(_: *mut libc::c_void) -> *mut libc::c_void {
        overflows(guards(), Some("from C"));
        ptr::null_mut()
    }
    let Some(end) = end("overflow::a_thread_without_a_signal_stack_gets_one", || {
        // SAFETY: zeros are a valid thread number.
        let mut thread: libc::pthread_t = unsafe { std::mem::zeroed() };
        // SAFETY: `thread` is writable, and the function uses no argument.
        let made =
            unsafe { libc::pthread_create(&raw mut thread, ptr::null(), body, ptr::null_mut()) };
        assert_eq!(made, 0);
        // SAFETY: the thread was made, and is joined once.
        unsafe { libc::pthread_join(thread, ptr::null_mut()) };
    }) else {
        return;
    };
    end.by_signal(libc::SIGABRT).saying("thread 'from C' has overflowed its stack of 32 KiB");
}

fn signal_stack() -> libc::stack_t {
    // SAFETY: zeros are a valid `stack_t`.
    let mut now: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call only writes to `now`.
    assert_eq!(unsafe { libc::sigaltstack(ptr::null(), &raw mut now) }, 0);
    now
}

#[test]
fn a_signal_stack_that_was_there_stays_and_one_of_ours_goes() {
    thread::spawn(|| {
        let before = signal_stack();
        let watched = watch().unwrap();
        if before.ss_flags & libc::SS_DISABLE == 0 {
            assert_eq!(signal_stack().ss_sp, before.ss_sp);
        }
        drop(watched);
        let none = libc::stack_t { ss_flags: libc::SS_DISABLE, ..before };
        // SAFETY: the thread is not on it. The thread ends soon, and the standard library frees
        // what belongs to it.
        assert_eq!(unsafe { libc::sigaltstack(&raw const none, ptr::null_mut()) }, 0);
        let (outer, inner) = (watch().unwrap(), watch().unwrap());
        let ours = signal_stack();
        assert_eq!(ours.ss_flags & libc::SS_DISABLE, 0);
        drop(inner);
        assert_eq!(signal_stack().ss_sp, ours.ss_sp, "the outer guard keeps the signal stack");
        drop(outer);
        assert_ne!(signal_stack().ss_flags & libc::SS_DISABLE, 0);
        if before.ss_flags & libc::SS_DISABLE == 0 {
            // SAFETY: restores the former setting.
            assert_eq!(unsafe { libc::sigaltstack(&raw const before, ptr::null_mut()) }, 0);
        }
    })
    .join()
    .unwrap();
}

#[test]
fn a_wild_pointer_into_a_guard_is_told_and_ends_the_process_as_ever() {
    let Some(end) =
        end("overflow::a_wild_pointer_into_a_guard_is_told_and_ends_the_process_as_ever", || {
            let _watched = watch().unwrap();
            let stack = taken(&mut slab(4, guards()));
            stack.set_name(Some("innocent"));
            let guard = ptr::with_exposed_provenance::<u8>(stack.limit().get() + 100);
            // SAFETY: this is not safe: it faults and ends the process.
            black_box(unsafe { guard.read_volatile() });
        })
    else {
        return;
    };
    end.by_signal(libc::SIGSEGV).saying("in the guard below the stack of thread 'innocent'");
    end.saying("a wild pointer").not_saying("has overflowed");
}

#[test]
fn an_overflow_of_an_ordinary_thread_is_told_by_the_standard_library() {
    let Some(end) =
        end("overflow::an_overflow_of_an_ordinary_thread_is_told_by_the_standard_library", || {
            let _watched = watch().unwrap();
            let _slab = slab(4, guards());
            let thread = thread::Builder::new().name("ordinary".into());
            thread.spawn(|| descend(TOO_DEEP)).unwrap().join().unwrap();
        })
    else {
        return;
    };
    end.by_signal(libc::SIGABRT).saying("thread 'ordinary'").saying("has overflowed its stack");
    end.not_saying(ADVICE);
}

#[test]
fn a_thread_goes_as_deep_as_its_stack_is() {
    let stack = taken(&mut slab(2, guards()));
    // The stack has 32 KiB less than one for the head, and each frame needs 256 bytes and some
    // more.
    let (sum, stack) = on(stack, || descend(20));
    assert_eq!(sum, 210);
    let (sum, _) = on(stack, || descend(30));
    assert_eq!(sum, 465);
}
