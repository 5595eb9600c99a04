use super::*;
use corosensei::stack::Stack as _;
use corosensei::{Coroutine, CoroutineResult};
#[cfg(target_os = "linux")]
use stanchion_alone::alone;
use stanchion_alone::end;
use std::collections::HashSet;
use std::{ptr, thread};

static_assertions::assert_impl_all!(Stacks: Send, Sync);
static_assertions::assert_impl_all!(FiberStack: Send, Sync);

fn stacks() -> Stacks {
    Stacks::new(Size::of(0).unwrap()).unwrap()
}

/// The word that a thread on the stack would write first.
fn word(stack: &FiberStack) -> *mut usize {
    ptr::with_exposed_provenance_mut(stack.base().get() - size_of::<usize>())
}

fn write(stack: &FiberStack, value: usize) {
    // SAFETY: the stack is the test's, and nothing is on it.
    unsafe { word(stack).write_volatile(value) };
}

fn read(stack: &FiberStack) -> usize {
    // SAFETY: as above.
    unsafe { word(stack).read_volatile() }
}

/// Sums up on `stack`, and says so.
fn sum_on(stack: FiberStack) -> u64 {
    let mut coroutine = Coroutine::<u64, (), u64, _>::with_stack(stack, |exit, mut next| {
        let mut sum = 0;
        while next != 0 {
            sum += next;
            next = exit.suspend(());
        }
        sum
    });
    for next in 1..=4 {
        assert!(matches!(coroutine.resume(next), CoroutineResult::Yield(())));
    }
    match coroutine.resume(0) {
        CoroutineResult::Return(sum) => sum,
        CoroutineResult::Yield(()) => unreachable!("it ends at 0"),
    }
}

#[test]
fn the_stack_that_was_used_last_is_the_next() {
    let stacks = stacks();
    let (first, second) = (stacks.take().unwrap(), stacks.take().unwrap());
    let (was_first, was_second) = (first.base(), second.base());
    assert_ne!(was_first, was_second);
    drop(second);
    drop(first);
    let (first, second) = (stacks.take().unwrap(), stacks.take().unwrap());
    assert_eq!((first.base(), second.base()), (was_first, was_second));
}

#[test]
fn a_stack_outlives_what_it_was_taken_from() {
    let stack = stacks().take().unwrap();
    assert_eq!(sum_on(stack), 10);
}

#[test]
fn slabs_double_up_to_a_bound() {
    let stacks = stacks();
    let mut taken = Vec::new();
    let mut sizes = Vec::new();
    for _ in 0..4000 {
        taken.push(stacks.take().unwrap());
        sizes.push(stacks.0.free.lock().stacks);
    }
    sizes.dedup();
    assert_eq!(sizes, [64, 128, 256, 512, 1024, 2048, 3072, 4096]);
}

#[test]
fn a_slab_of_large_stacks_has_fewer() {
    let stacks = Stacks::new(Size::of(100 << 20).unwrap()).unwrap();
    assert_eq!(stacks.0.free.lock().stacks, 10);
    let taken: Vec<_> = (0..11).map(|_| stacks.take().unwrap()).collect();
    assert_eq!(stacks.0.free.lock().stacks, 20);
    drop(taken);
}

/// Memory that was given back reads as zeros on Linux.
#[test]
#[cfg(target_os = "linux")]
fn free_stacks_above_the_mark_have_no_memory() {
    let stacks = stacks();
    let taken: Vec<_> = (0..3 * WARM).map(|_| stacks.take().unwrap()).collect();
    for stack in &taken {
        write(stack, 7);
    }
    drop(taken);
    let taken: Vec<_> = (0..3 * WARM).map(|_| stacks.take().unwrap()).collect();
    assert_eq!(taken.iter().filter(|stack| read(stack) == 7).count(), WARM);
    assert_eq!(taken.iter().filter(|stack| read(stack) == 0).count(), 2 * WARM);
    assert_eq!(stacks.0.free.lock().stacks, 4 * FIRST, "the same were used again");
}

#[test]
fn threads_that_take_and_give_at_once_never_share_one() {
    let stacks = stacks();
    thread::scope(|scope| {
        for thread in 1..=4_usize {
            let stacks = &stacks;
            scope.spawn(move || {
                for round in 0..300 {
                    let taken: Vec<_> = (0..round % 40).map(|_| stacks.take().unwrap()).collect();
                    for (number, stack) in taken.iter().enumerate() {
                        write(stack, thread << 32 | number);
                    }
                    thread::yield_now();
                    for (number, stack) in taken.iter().enumerate() {
                        assert_eq!(read(stack), thread << 32 | number);
                    }
                }
            });
        }
    });
    let made = stacks.0.free.lock().stacks;
    assert!(made <= 256, "{made} for at most 156 at a time");
}

#[test]
fn a_hundred_thousand_stacks_are_taken_at_once() {
    const MANY: usize = 100_000;
    let stacks = stacks();
    if stacks.guards() == Guards::Protected {
        return;
    }
    assert_eq!(stacks.size().bytes(), 16 << 10);
    let taken: Vec<_> = (0..MANY).map(|_| stacks.take().unwrap()).collect();
    let different: HashSet<_> = taken.iter().map(FiberStack::base).collect();
    assert_eq!(different.len(), MANY);
    for (number, stack) in taken.into_iter().enumerate() {
        if number % 1000 == 0 {
            assert_eq!(sum_on(stack), 10);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn when_protected_guards_run_out_the_error_says_why_and_nothing_is_lost() {
    let test = "thread::stacks::tests::when_protected_guards_run_out_the_error_says_why_and_nothing_is_lost";
    alone(test, || {
        let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        if limit > 200_000 {
            return;
        }
        let stacks = Stacks::with_guards(Size::of(0).unwrap(), Guards::Protected).unwrap();
        assert_eq!(stacks.guards(), Guards::Protected);
        let mut taken = Vec::new();
        let error = loop {
            match stacks.take() {
                Ok(stack) => taken.push(stack),
                Err(error) => break error,
            }
        };
        assert_eq!(error, StackError::Mappings { limit });
        assert_eq!(stacks.take().unwrap_err(), error, "and again");
        assert!(taken.len() > limit / 2 - 1000, "{}", taken.len());
        assert_eq!(sum_on(taken.pop().unwrap()), 10);
        let stack = stacks.take().expect("one was given back");
        assert_eq!(sum_on(stack), 10);
        drop(taken);
        assert!((0..limit / 4).map(|_| stacks.take()).all(|stack| stack.is_ok()));
    });
}

/// Needs more stack than there is.
fn descend(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 32]);
    if depth == 0 { 0 } else { descend(std::hint::black_box(depth - 1)) + frame[31] }
}

#[test]
fn an_overflow_names_the_thread_and_the_mend() {
    let end = end("thread::stacks::tests::an_overflow_names_the_thread_and_the_mend", || {
        let _watched = watch().unwrap();
        let stack = stacks().take().unwrap();
        let label = stack.label();
        let mut coroutine = Coroutine::<(), (), u64, _>::with_stack(stack, move |_, ()| {
            label.set(Some("hasher"));
            descend(1 << 40)
        });
        coroutine.resume(());
    });
    let Some(end) = end else { return };
    let text = format!("thread 'hasher' has overflowed its stack of 16 KiB ({ADVICE})");
    end.by_signal(libc::SIGABRT).saying(&text);
}

/// The next thread on a stack does not have the name of the one before.
#[test]
fn a_name_goes_with_its_thread() {
    let stacks = stacks();
    let stack = stacks.take().unwrap();
    stack.label().set(Some("gone"));
    assert_eq!(stack.stack.name().as_deref(), Some("gone"));
    drop(stack);
    assert_eq!(stacks.take().unwrap().stack.name(), None);
}
