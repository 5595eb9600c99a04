//! Stacks of a slot.

use super::super::*;
use core::hint::black_box;
use core::ptr;
use corosensei::stack::Stack;
use corosensei::{Coroutine, CoroutineResult};
use stanchion_alone::{alone, end};
use std::os::unix::process::ExitStatusExt;

fn span(slot: &Slot, stack: &ArenaStack) -> (usize, usize) {
    (stack.limit().get() - slot.base(), stack.base().get() - slot.base())
}

#[test]
fn stacks_begin_at_the_top_and_are_used_again_the_last_one_first() {
    const KIB: usize = 1 << 10;
    let slot = Slot::take().unwrap();
    let sizes = [64 * KIB, 1, 100 * KIB, 64 * KIB];
    let stacks = sizes.map(|size| slot.stack(size).unwrap());
    let spans = stacks.each_ref().map(|stack| span(&slot, stack));
    // Each with a guard of 64 KiB.
    let top = 4 << 20;
    let at = |limit: usize, base: usize| ((top - limit) * KIB, (top - base) * KIB);
    assert_eq!(spans, [at(128, 0), at(256, 128), at(448, 256), at(576, 448)]);
    drop(stacks);
    let again = [64 * KIB; 3].map(|size| slot.stack(size).unwrap());
    assert_eq!(again.each_ref().map(|stack| span(&slot, stack)), [spans[3], spans[1], spans[0]]);
    assert_eq!(span(&slot, &slot.stack(128 * KIB).unwrap()), spans[2]);
}

/// Runs a program on a stack of a slot, and says where its variables and its blocks are.
fn identities_of_a_program(slot: &Slot) -> Vec<u64> {
    let mut identities = Identities::new(slot);
    let stack = slot.stack(1 << 16).unwrap();
    let mut coroutine = Coroutine::with_stack(stack, |yielder, ()| {
        let node = [0_u64; 32];
        yielder.suspend((&raw const node).cast());
        let boxed = Box::new(black_box(7_u64));
        yielder.suspend((&raw const *boxed).cast());
        drop(boxed);
        ptr::null::<()>()
    });
    let mut seen = Vec::new();
    loop {
        let step = {
            let _inside = slot.enter();
            coroutine.resume(())
        };
        match step {
            CoroutineResult::Yield(address) => seen.push(identities.of(address)),
            CoroutineResult::Return(_) => return seen,
        }
    }
}

#[test]
fn variables_and_blocks_have_the_same_identity_in_every_slot() {
    let (one, two) = (Slot::take().unwrap(), Slot::take().unwrap());
    let seen = identities_of_a_program(&one);
    assert_eq!(identities_of_a_program(&two), seen);
    let [node, boxed] = seen[..] else { panic!("{seen:?}") };
    assert!(((4 << 30) - (64 << 10)..4 << 30).contains(&node), "{node:#x}");
    assert_eq!(boxed, 128);
}

#[test]
fn ten_thousand_stacks_at_once() {
    let slot = Slot::take().unwrap();
    let mut stacks: Vec<_> = (0..10_000).map(|_| slot.stack(64 << 10).unwrap()).collect();
    for stack in &stacks {
        let top = ptr::with_exposed_provenance_mut::<u64>(stack.base().get() - 8);
        // SAFETY: the stack's last word, and no thread runs on it.
        unsafe { top.write(stack.base().get() as u64) };
    }
    stacks.retain(|stack| {
        let top = ptr::with_exposed_provenance::<u64>(stack.base().get() - 8);
        // SAFETY: written above.
        unsafe { top.read() != stack.base().get() as u64 }
    });
    assert!(stacks.is_empty());
}

#[test]
fn the_last_stack_there_can_be_is_told_from_the_next() {
    alone("arena::tests::stacks::the_last_stack_there_can_be_is_told_from_the_next", || {
        let slot = Slot::take().unwrap();
        let mut stacks = Vec::new();
        let error = loop {
            match slot.stack(64 << 10) {
                Ok(stack) => stacks.push(stack),
                Err(error) => break error,
            }
        };
        assert!(stacks.len() >= 10_000, "{}", stacks.len());
        let said = error.to_string();
        match error {
            // The usual limit of mappings is met a few stacks before the slot is full.
            ArenaError::Kernel { number, .. } => {
                assert_eq!(number, stacks.len() + 1);
                assert!(said.contains("vm.max_map_count"), "{said}");
            }
            ArenaError::Stacks(number) => assert_eq!(number, stacks.len() + 1),
            other => panic!("{other}"),
        }
        // A stack that is given back is there for the next.
        stacks.truncate(100);
        stacks.push(slot.stack(64 << 10).unwrap());
        drop((stacks, slot));
        assert!(Slot::take().unwrap().stack(64 << 10).is_ok());
    });
}

/// Each call has a kilobyte of its own.
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 128]);
    if depth == 0 { frame[0] } else { descend(depth - 1) + black_box(frame[64]) }
}

#[test]
fn a_stack_that_overflows_meets_its_guard() {
    let run = |depth| {
        let slot = Slot::take().unwrap();
        let stack = slot.stack(64 << 10).unwrap();
        // Without a guard, this is what would be overwritten.
        let _below = slot.stack(16 << 20).unwrap();
        Coroutine::<(), (), u64, _>::with_stack(stack, move |_, ()| descend(depth)).resume(())
    };
    assert!(matches!(run(10), CoroutineResult::Return(55)));
    let test = "arena::tests::stacks::a_stack_that_overflows_meets_its_guard";
    if let Some(end) = end(test, || assert!(matches!(run(2_000), CoroutineResult::Yield(())))) {
        let signal = end.status.signal();
        assert!(matches!(signal, Some(libc::SIGSEGV | libc::SIGBUS)), "{end:?}");
    }
}
