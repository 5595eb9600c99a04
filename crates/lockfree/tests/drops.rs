//! Every value is dropped exactly once: whichever thread takes it, wherever a structure ends, and
//! if a value's own drop panics. And memory goes back as it came.
//!
//! | | tested by |
//! | --- | --- |
//! | dropped once | [`values::Ledger`]: a second drop fails at once, a missing one at the end |
//! | freed once, with its layout | [`allocator::Checked`], which ends the process |

use stanchion_lockfree as lockfree;

#[path = "common/allocator.rs"]
mod allocator;
#[path = "common/structures.rs"]
mod structures;
#[path = "common/values.rs"]
mod values;

use std::alloc::Layout;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Once};
use std::thread;

use structures::{Family, Shared, each};
use values::{Ledger, Value};

#[global_allocator]
static ALLOCATOR: allocator::Checked = allocator::Checked;

/// Makes an empty structure and `count` values, and puts in those that fit.
fn filled<F: Family>(ledger: &Arc<Ledger>, count: u64) -> F::Of<Value> {
    let structure = F::make();
    for number in 0..count {
        // What does not fit comes back, and is dropped.
        let _ = structure.put(number * 7 % 11, ledger.value(number * 7 % 11));
    }
    structure
}

#[test]
fn what_is_left_in_a_structure_is_dropped_with_it() {
    fn test<F: Family>() {
        for (put, taken) in [(0, 0), (1, 0), (1, 1), (4, 2), (100, 0), (100, 37), (100, 100)] {
            let ledger = Ledger::new(100);
            let structure = filled::<F>(&ledger, put);
            let fit = ledger.made() - ledger.dropped();
            let taken = fit.min(taken);
            for _ in 0..taken {
                assert!(structure.take().is_some());
            }
            assert_eq!(ledger.made() - ledger.dropped(), fit - taken);
            drop(structure);
            ledger.assert_settled(F::NAME);
        }
    }
    each!(test);
}

#[test]
fn what_an_iterator_does_not_give_out_is_dropped_with_it() {
    fn test<F: Family>() {
        for given in [0, 1, 3, 1_000] {
            let ledger = Ledger::new(50);
            let structure = filled::<F>(&ledger, 50);
            let fit = ledger.made() - ledger.dropped();
            let some = structure.into_some(given);
            assert_eq!(some.len(), fit.min(given));
            assert_eq!(ledger.made() - ledger.dropped(), some.len());
            drop(some);
            ledger.assert_settled(F::NAME);
        }
    }
    each!(test);
}

#[test]
fn what_a_drain_does_not_give_out_stays_also_when_it_is_forgotten() {
    fn test<F: Family>() {
        let ledger = Ledger::new(5);
        let structure = filled::<F>(&ledger, 4);
        let first = structure.drained(1);
        let second = structure.forget_drain();
        assert_eq!(ledger.dropped(), 0);
        assert!(structure.take().is_some());
        drop((first, second));
        assert_eq!(ledger.dropped(), 3);
        assert!(structure.put(9, ledger.value(9)).is_ok());
        drop(structure);
        ledger.assert_settled(F::NAME);
    }
    each!(test);
}

/// Threads put in and take out as they like; some values stay.
#[test]
fn values_that_go_from_thread_to_thread_are_dropped_once() {
    const THREADS: u64 = 4;
    const EACH: u64 = 3_000;
    fn test<F: Family>() {
        let ledger = Ledger::new((THREADS * EACH) as usize);
        let structure = F::make::<Value>();
        let together = Barrier::new(THREADS as usize);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (structure, ledger, together) = (&structure, &ledger, &together);
                scope.spawn(move || {
                    together.wait();
                    for number in 0..EACH {
                        let _ = structure.put(number % 5, ledger.value(number % 5));
                        if (number + thread) % 8 != 0 {
                            drop(structure.take());
                        }
                    }
                });
            }
        });
        drop(structure);
        ledger.assert_settled(F::NAME);
    }
    each!(test);
}

/// One value's drop panics while the structure, or its iterator, is dropped: the others are dropped
/// all the same, and the panic arrives.
#[test]
fn a_panic_in_a_drop_costs_no_other_value_its_own() {
    fn test<F: Family>() {
        for breaks in [0, 1, 2, 3] {
            for by_iterator in [false, true] {
                let ledger = Ledger::new(4);
                let structure = F::make();
                for number in 0..4 {
                    let value = ledger.value_that(number, number == breaks);
                    assert!(structure.put(number, value).is_ok());
                }
                let dropped = catch_unwind(AssertUnwindSafe(|| {
                    if by_iterator {
                        drop(structure.into_some(0));
                    } else {
                        drop(structure);
                    }
                }));
                assert!(dropped.is_err(), "the panic of value {breaks} was swallowed");
                ledger.assert_settled(F::NAME);
            }
        }
    }
    silently(|| each!(test));
}

/// One value's drop panics in the midst of a drain: the rest stays, and is dropped with the
/// structure. An owning iterator drops the rest itself.
#[test]
fn a_panic_in_the_midst_of_a_drain_costs_no_other_value_its_own() {
    fn test<F: Family>() {
        for breaks in [0, 1, 2, 3] {
            let ledger = Ledger::new(4);
            let mut structure = F::make();
            for number in 0..4 {
                let value = ledger.value_that(number, number == breaks);
                assert!(structure.put_mut(number, value).is_ok());
            }
            let drained =
                catch_unwind(AssertUnwindSafe(|| while structure.drained(1).pop().is_some() {}));
            assert!(drained.is_err());
            let dropped = ledger.dropped();
            assert!((1..=4).contains(&dropped));
            assert_eq!(structure.peek_mut().is_none(), dropped == 4);
            assert_eq!(structure.take_mut().is_none(), dropped == 4);
            drop(structure);
            ledger.assert_settled(F::NAME);
        }
    }
    silently(|| each!(test));
}

/// A value that breaks when the caller drops it is the caller's: the structure goes on.
#[test]
fn a_structure_outlives_panics_of_its_values() {
    fn test<F: Family>() {
        let ledger = Ledger::new(40);
        let structure = F::make();
        for number in 0..20 {
            assert!(structure.put(number, ledger.value_that(number, true)).is_ok());
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(structure.take())));
            assert!(dropped.is_err());
            assert!(structure.put(number, ledger.value(number)).is_ok());
            assert!(structure.take().is_some());
        }
        assert!(structure.look());
        drop(structure);
        ledger.assert_settled(F::NAME);
    }
    silently(|| each!(test));
}

/// A structure that was filled, emptied and dropped owes nothing. The thread keeps something for
/// the next one, and that does not grow.
#[test]
fn memory_goes_back() {
    fn test<F: Family>() {
        let round = || {
            for _ in 0..3 {
                let ledger = Ledger::new(300);
                let structure = filled::<F>(&ledger, 300);
                for _ in 0..100 {
                    structure.take();
                }
                drop(structure);
                ledger.assert_settled(F::NAME);
            }
        };
        (0..3).for_each(|_| round());
        let before = allocator::live();
        (0..5).for_each(|_| round());
        let kept = allocator::live() - before;
        assert!(kept <= 0, "{}: {kept} pieces more after five rounds", F::NAME);
    }
    // On a thread of its own: what other tests have retired on this one may be freed now or then.
    thread::spawn(|| each!(test)).join().unwrap();
}

/// Runs `body` without the messages of the panics that it expects.
fn silently(body: impl FnOnce()) {
    static SILENT: Once = Once::new();
    SILENT.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref() != Some(&values::BREAKS) {
                loud(info);
            }
        }));
    });
    body();
}

/// The check itself, in a process that it may end.
#[test]
fn memory_that_is_given_back_wrongly_ends_the_process() {
    const ASKED: &str = "STANCHION_FREE_WRONGLY";
    const NAME: &str = "memory_that_is_given_back_wrongly_ends_the_process";
    if let Ok(way) = std::env::var(ASKED) {
        let layout = Layout::new::<[u64; 4]>();
        // SAFETY: not empty.
        let piece = unsafe { std::alloc::alloc(layout) };
        let wrong = if way == "layout" { Layout::new::<[u64; 3]>() } else { layout };
        // SAFETY: none: this is the mistake that is to be found, before anything comes of it.
        unsafe { std::alloc::dealloc(piece, wrong) };
        // SAFETY: as before.
        unsafe { std::alloc::dealloc(piece, wrong) };
        return;
    }
    for (way, said) in [("layout", "with another layout"), ("twice", "given back")] {
        let program = std::env::current_exe().expect("a program has a path");
        let mut child = std::process::Command::new(program);
        let output = child.args(["--exact", NAME, "--nocapture"]).env(ASKED, way).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(said), "{way}: {text}");
    }
}
