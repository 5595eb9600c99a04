//! A push and a pop of `EliminationStack` do meet elsewhere: a value comes out that never was on
//! the stack.
//!
//! Five threads push, and one of them is frozen after one of its accesses. Then
//!
//! - one thread takes the rest out: it loses no race and never looks for an offer, so it gets the
//!   frozen thread's value only if that is on the stack;
//! - or six threads do: they lose races and look for offers, so they may get it from the frozen
//!   thread's offer.
//!
//! Both runs are the same until the takers begin. So where the one taker does not get the value and
//! the six do, elimination handed it over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use stanchion_lockfree_simulated::stack::EliminationStack;
use stanchion_simulator::{Arena, Simulation, ThreadId, inside, machines, os::freeze};

#[global_allocator]
static ALLOCATOR: Arena = Arena;

/// Values that each thread pushes.
const EACH: u64 = 40;

/// More accesses than any thread makes for its pushes.
const MOST: u64 = 20_000;

fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, None, Box::new(body))
}

/// Returns when it is `start`: threads that are started one after the other do not meet of
/// themselves.
fn begin_at(start: u64) {
    inside::work(start.saturating_sub(inside::time().as_nanos()));
}

/// Returns a time at which all threads that are started now can begin together.
fn soon() -> u64 {
    inside::time().as_nanos() + 200_000
}

/// Returns the values that so many takers took out, and the value that the frozen thread was
/// pushing; `None` if that thread had ended before so many accesses.
fn taken_out(accesses: u64, takers: usize) -> Option<(Vec<u64>, u64)> {
    let run = Simulation::new(machines::modern(6)).run(move || {
        let stack = Arc::new(EliminationStack::<u64>::new());
        let start = soon();
        let push = |thread: u64, pushing: Arc<AtomicU64>| {
            let stack = stack.clone();
            move || {
                begin_at(start);
                for value in thread * EACH..(thread + 1) * EACH {
                    pushing.store(value, Ordering::Relaxed);
                    stack.push(value);
                }
            }
        };
        let pushing = Arc::new(AtomicU64::new(0));
        let pushes = push(0, pushing.clone());
        // The one that comes last loses most races.
        let others = [1, 2, 3, 4].map(|thread| spawn(push(thread, Arc::default())));
        let victim = spawn(move || freeze::after(accesses, pushes));
        let frozen = freeze::wait(victim);
        others.into_iter().for_each(inside::join);

        let (taken, start) = (Arc::new(Mutex::new(Vec::new())), soon());
        let takers: Vec<_> = (0..takers)
            .map(|_| {
                let (stack, taken) = (stack.clone(), taken.clone());
                spawn(move || {
                    begin_at(start);
                    while let Some(value) = stack.pop() {
                        taken.lock().unwrap().push(value);
                    }
                })
            })
            .collect();
        takers.into_iter().for_each(inside::join);
        let mut taken = std::mem::take(&mut *taken.lock().unwrap());
        taken.sort_unstable();
        frozen.then(|| (taken, pushing.load(Ordering::Relaxed)))
    });
    run.unwrap_or_else(|failure| panic!("{failure}")).result
}

#[test]
fn a_value_is_handed_over_that_never_was_on_the_stack() {
    let mut offers = 0;
    for accesses in 0..MOST {
        let (alone, pushing) = taken_out(accesses, 1)
            .unwrap_or_else(|| panic!("{offers} values were not on the stack, none came out"));
        if alone.contains(&pushing) {
            continue;
        }
        // Not on the stack yet: no value of another thread is missing, and none is there twice.
        let there: Vec<u64> =
            (0..5 * EACH).filter(|value| !(pushing..EACH).contains(value)).collect();
        assert_eq!(alone, there, "after {accesses} accesses");
        offers += 1;
        let (together, same) = taken_out(accesses, 6).expect("the same until then");
        assert_eq!(same, pushing, "the runs are the same until then");
        if together.contains(&pushing) {
            let mut both = there;
            both.push(pushing);
            both.sort_unstable();
            assert_eq!(together, both, "handed over once, and nothing else with it");
            println!(
                "after {accesses} accesses a push of {pushing} is in the midst of an offer, which a pop accepts"
            );
            return;
        }
    }
    panic!("after {MOST} accesses it still pushes");
}
