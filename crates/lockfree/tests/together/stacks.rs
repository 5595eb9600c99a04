//! Tests of every stack with real threads: each value comes out once, whatever happens in between.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use stanchion_lockfree::ConcurrentStack;

trait Stack: ConcurrentStack<Item = Box<u64>> + Default + Sync {}
impl<S: ConcurrentStack<Item = Box<u64>> + Default + Sync> Stack for S {}

const THREADS: u64 = 4;

/// Each thread pushes numbers of its own and pops, in bursts of different lengths.
fn what_goes_in_comes_out<S: Stack>() {
    const EACH: u64 = 10_000;
    let stack = S::default();
    let taken: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let stack = &stack;
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    let values: Vec<u64> = (thread * EACH..(thread + 1) * EACH).collect();
                    for (round, burst) in values.chunks(7).enumerate() {
                        burst.iter().for_each(|&value| stack.push(Box::new(value)));
                        let popped = (0..round % 8).filter_map(|_| stack.pop());
                        taken.extend(popped.map(|value| *value));
                    }
                    taken
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut counts = BTreeMap::new();
    let rest = std::iter::from_fn(|| stack.pop()).map(|value| *value);
    taken.into_iter().chain(rest).for_each(|value| *counts.entry(value).or_insert(0) += 1);
    assert!(counts.into_iter().eq((0..THREADS * EACH).map(|value| (value, 1))));
    assert!(stack.is_empty());
}

/// Values that one thread pushed come out to another in the opposite order, if no other thread is
/// there.
fn last_in_first_out<S: Stack>() {
    let stack = S::default();
    thread::scope(|scope| {
        scope.spawn(|| (0..1_000).for_each(|value| stack.push(Box::new(value))));
    });
    let pop_all = || std::iter::from_fn(|| stack.pop()).map(|value| *value).collect::<Vec<_>>();
    let out = thread::scope(|scope| scope.spawn(pop_all).join());
    assert!(out.unwrap().into_iter().eq((0..1_000).rev()));
}

/// A thread that has pushed has something to pop, as no thread pops more than it has pushed.
fn never_empty_with_something_on_it<S: Stack>() {
    let stack = S::default();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let stack = &stack;
            scope.spawn(move || {
                for _ in 0..10_000 {
                    stack.push(Box::new(thread));
                    assert!(stack.pop().is_some());
                }
            });
        }
    });
    assert!(stack.is_empty());
}

/// Counts its drops.
struct Dropped(&'static AtomicUsize);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Checks also the values that are left when the structure is dropped.
fn every_value_is_dropped_once<S>(drops: &'static AtomicUsize)
where
    S: ConcurrentStack<Item = Dropped> + Default + Sync,
{
    let stack = S::default();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    stack.push(Dropped(drops));
                    stack.push(Dropped(drops));
                    drop(stack.pop());
                }
            });
        }
    });
    drop(stack);
    assert_eq!(drops.load(Ordering::Relaxed), THREADS as usize * 2_000);
}

macro_rules! stacks {
    ([] $({ $name:ident: $stack:ty, $($rest:tt)* })+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn what_goes_in_comes_out() {
                super::what_goes_in_comes_out::<$stack>();
            }

            #[test]
            fn last_in_first_out() {
                super::last_in_first_out::<$stack>();
            }

            #[test]
            fn never_empty_with_something_on_it() {
                super::never_empty_with_something_on_it::<$stack>();
            }

            #[test]
            fn every_value_is_dropped_once() {
                static DROPS: AtomicUsize = AtomicUsize::new(0);
                super::every_value_is_dropped_once::<$stack>(&DROPS);
            }
        }
    )+};
}

stanchion_lockfree::__structures!(stack: stacks, _, lock: stanchion_spin::TestAndSet);
