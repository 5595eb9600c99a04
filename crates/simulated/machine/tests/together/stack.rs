//! Stacks inside a run: user-level threads on the run's virtual threads.
#![cfg(all(unix, not(miri)))]

use corosensei::stack::StackPointer;
use corosensei::{Coroutine, CoroutineResult};
use stanchion_machine::atomic::{AtomicU32, Ordering::Relaxed};
use stanchion_machine::stack::{Guards, Size, Slab, Stack, guards};
use stanchion_machine::thread;
use stanchion_machine_simulated as stanchion_machine;
use stanchion_simulator::{Simulation, machines};

/// A stack of `machine` as corosensei takes it.
struct On(Stack);

// SAFETY: the stack has a guard below it, and at least 15 KiB above the guard.
unsafe impl corosensei::stack::Stack for On {
    fn base(&self) -> StackPointer {
        self.0.base()
    }

    fn limit(&self) -> StackPointer {
        self.0.limit()
    }
}

/// Runs three coroutines in turn, with an atomic on the stack of each. Returns the sum of their
/// atomics.
fn interleaved(slab: &mut Slab) -> u32 {
    let mut coroutines: Vec<_> = (0..3)
        .map(|number| {
            let stack = slab.next_stack().unwrap().unwrap();
            Coroutine::<(), (), u32, On>::with_stack(On(stack), move |yielder, ()| {
                let mine = AtomicU32::new(number);
                for _ in 0..4 {
                    mine.fetch_add(1, Relaxed);
                    yielder.suspend(());
                }
                mine.load(Relaxed)
            })
        })
        .collect();
    let mut sum = 0;
    while !coroutines.is_empty() {
        coroutines.retain_mut(|coroutine| match coroutine.resume(()) {
            CoroutineResult::Yield(()) => true,
            CoroutineResult::Return(result) => {
                sum += result;
                false
            }
        });
    }
    sum
}

#[test]
fn user_level_threads_use_the_memory_of_the_run_and_every_run_is_the_same() {
    let run = || {
        let run = Simulation::new(machines::modern(2)).run(|| {
            let body = || {
                let mut slab = Slab::new(Size::of(1).unwrap(), 8, guards(), "").unwrap();
                interleaved(&mut slab) + interleaved(&mut slab)
            };
            let other = thread::spawn(body);
            body() + other.join().unwrap()
        });
        let run = run.unwrap();
        assert_eq!(run.result, 60);
        run.statistics
    };
    assert_eq!(run(), run());
}

#[test]
fn memory_of_freed_stacks_is_ordinary_memory_again() {
    assert_eq!(guards(), Guards::Protected);
    for _ in 0..3 {
        let size = Size::of(1).unwrap();
        let mut slab = Slab::new(size, 4, Guards::Installed, "").unwrap();
        assert_eq!(slab.guards(), Guards::Protected);
        let mut stack = slab.next_stack().unwrap().unwrap();
        stack.set_name(Some("one"));
        // SAFETY: nothing is on the stack.
        unsafe { stack.discard() };
        assert_eq!(stack.name(), None);
        drop((slab, stack));
        let bytes = vec![1_u8; 4 * size.stride()];
        assert_eq!(bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>(), bytes.len());
    }
}
