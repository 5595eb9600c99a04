//! Models of the parts of a pool that two threads meet in: the biased lock, latches, how a closed pool finds out that all is over.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `biased_owner_and_thief` | its owner, a thief | both are inside: a race in the cell, or a lost update |
//! | `biased_two_thieves_bounded` | its owner, two thieves | a thief comes in beside another, or after it without what it did |
//! | `latch_of_an_outsider` | who waits asleep, the setter | a wake-up is lost; the outcome is not seen; the latch is used after it is gone |
//! | `latch_of_a_worker` | who watches and sleeps elsewhere, the setter | the setter does not tell, and the owner sleeps |
//! | `latch_counted_down_bounded` | who waits, two tasks of a scope | the last does not have what the first did; the scope is used after it is gone |
//! | `closing_two_that_rest_bounded` | two workers of a closed pool, one with a last task | one leaves while the other may create a task; both sleep |
//!
//! Payloads are checked cells, and every latch is dropped as soon as its owner may go on. Every model prints `model NAME: N executions`.

#[path = "../../../../crates/threadpool/src/biased.rs"]
#[allow(dead_code, unreachable_pub)]
mod biased;
#[path = "../../../../crates/threadpool/src/closing.rs"]
#[allow(dead_code, unreachable_pub)]
mod closing;
#[path = "../../../../crates/threadpool/src/latch.rs"]
#[allow(dead_code, unreachable_pub)]
mod latch;

use biased::Biased;
use closing::Closing;
use latch::Latch;
use machine::atomic::{AtomicUsize, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::clock::Deadline;
use machine::sync::Arc;
use machine::{Model, thread};
use stanchion_competitive::EventCount;

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

/// A pointer that is sent to another thread.
struct Sent<T>(*const T);
// SAFETY: who unpacks it answers for what it does with the pointer.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    fn get(&self) -> *const T {
        self.0
    }
}

fn steal(value: &Biased<u32>) -> u32 {
    u32::from(value.steal(|value| *value += 1).is_some())
}

fn own(value: &Biased<u32>) -> u32 {
    // SAFETY: called by one thread of each model, and not inside itself.
    unsafe {
        value.own(|value| {
            *value += 1;
            *value
        })
    }
}

#[test]
fn biased_owner_and_thief() {
    explore("biased_owner_and_thief", Model::new(), || {
        let value = Arc::new(Biased::new(0));
        let thief = {
            let value = value.clone();
            thread::spawn(move || steal(&value))
        };
        own(&value);
        let before = own(&value);
        let stolen = thief.join().unwrap();
        assert!(before == 2 || before == 3);
        assert_eq!(own(&value), 3 + stolen);
    });
}

#[test]
fn biased_two_thieves_bounded() {
    explore("biased_two_thieves_bounded", Model::new().preemptions(2).choices(1), || {
        let value = Arc::new(Biased::new(0));
        let thieves = [(); 2].map(|()| {
            let value = value.clone();
            thread::spawn(move || steal(&value))
        });
        own(&value);
        let stolen: u32 = thieves.into_iter().map(|thief| thief.join().unwrap()).sum();
        assert_eq!(own(&value), 2 + stolen);
    });
}

/// What a task of somebody's leaves for him, as a visit, a fork and a scope do.
struct Visit {
    outcome: UnsafeCell<u32>,
    open: AtomicUsize,
    latch: Latch,
}

impl Visit {
    fn new(open: usize) -> Box<Self> {
        let open = AtomicUsize::fresh(open);
        Box::new(Self { outcome: UnsafeCell::new(0), open, latch: Latch::new() })
    }

    /// The owner's last act: it must be the last that anybody does.
    fn take(self) -> u32 {
        // SAFETY: the latch is set.
        self.outcome.with(|outcome| unsafe { *outcome })
    }
}

/// Writes the outcome and sets the latch; says whether the owner must be told.
///
/// # Safety
///
/// The visit is alive until its latch is set, and this is called once.
unsafe fn end(visit: *const Visit) -> (bool, *const Latch) {
    // SAFETY: the caller's promise; so below.
    let these = unsafe { &*visit };
    // SAFETY: the owner looks when the latch is set.
    these.outcome.with_mut(|outcome| unsafe { *outcome += 5 });
    let latch = &raw const these.latch;
    // SAFETY: alive until it is set.
    (unsafe { Latch::set(latch) }, latch)
}

#[test]
fn latch_of_an_outsider() {
    explore("latch_of_an_outsider", Model::new(), || {
        let visit = Visit::new(1);
        let sent = Sent(&raw const *visit);
        let setter = thread::spawn(move || {
            // SAFETY: the owner waits.
            let (told, latch) = unsafe { end(sent.get()) };
            if told {
                Latch::wake(latch);
            }
        });
        visit.latch.wait();
        assert_eq!((*visit).take(), 5);
        setter.join().unwrap();
    });
}

#[test]
fn latch_of_a_worker() {
    explore("latch_of_a_worker", Model::new(), || {
        let visit = Visit::new(1);
        let events = Arc::new(EventCount::new());
        let sent = Sent(&raw const *visit);
        let setter = {
            let events = events.clone();
            thread::spawn(move || {
                // SAFETY: the owner waits.
                if unsafe { end(sent.get()) }.0 {
                    events.notify_only(3);
                }
            })
        };
        while !visit.latch.is_set() {
            let key = events.prepare();
            if visit.latch.watch() {
                events.wait_as(key, 3, Deadline::NEVER);
            }
        }
        assert_eq!((*visit).take(), 5);
        setter.join().unwrap();
    });
}

#[test]
fn latch_counted_down_bounded() {
    explore("latch_counted_down_bounded", Model::new().preemptions(2), || {
        let visit = Visit::new(3);
        let parts = Arc::new([const { UnsafeCell::new(0_u32) }; 2]);
        let sum = |parts: &[UnsafeCell<u32>; 2]| -> u32 {
            // SAFETY: all have counted down.
            parts.iter().map(|part| part.with(|part| unsafe { *part })).sum()
        };
        let tasks = [0, 1].map(|index| {
            let (sent, parts) = (Sent(&raw const *visit), SharedParts(parts.clone()));
            thread::spawn(move || {
                let parts = parts;
                // SAFETY: this task's own.
                parts.0[index].with_mut(|part| unsafe { *part = 1 });
                // SAFETY: the owner waits until all have counted down.
                let visit = unsafe { &*sent.get() };
                let latch = &raw const visit.latch;
                // AcqRel, as scopes and broadcasts do it.
                if visit.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                    assert_eq!(sum(&parts.0), 2);
                    // SAFETY: alive until it is set, by the last.
                    if unsafe { Latch::set(latch) } {
                        Latch::wake(latch);
                    }
                }
            })
        });
        if visit.open.fetch_sub(1, Ordering::AcqRel) > 1 {
            visit.latch.wait();
        }
        assert_eq!(sum(&parts), 2);
        drop(visit);
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

/// Cells that threads share; each writes its own.
struct SharedParts(Arc<[UnsafeCell<u32>; 2]>);
// SAFETY: who reads another's does so after it has counted down; the model checks that.
unsafe impl Send for SharedParts {}

/// A closed pool, as `Registry::is_over` uses its parts.
struct Pool {
    ready: AtomicUsize,
    run: AtomicUsize,
    closing: Closing,
    events: EventCount,
}

impl Pool {
    fn take(&self) -> bool {
        let took = |ready: usize| ready.checked_sub(1);
        self.ready.fetch_update(Ordering::Relaxed, Ordering::Relaxed, took).is_ok()
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) > 0
    }

    fn drain(&self, mut creates: usize) {
        loop {
            if self.take() {
                self.run.fetch_add(1, Ordering::Relaxed);
                if creates > 0 {
                    creates -= 1;
                    self.ready.fetch_add(1, Ordering::Relaxed);
                    self.events.notify_one();
                }
            } else if self.is_over() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.closing.rest();
        loop {
            let over = self.closing.may_be_over();
            if self.is_ready() {
                self.closing.go_on();
                return false;
            }
            if over {
                self.closing.declare();
                self.events.notify_all();
                return true;
            }
            let key = self.events.prepare();
            if self.is_ready() || self.closing.may_be_over() {
                self.events.cancel(key);
            } else {
                self.events.wait(key);
            }
        }
    }
}

#[test]
fn closing_two_that_rest_bounded() {
    explore("closing_two_that_rest_bounded", Model::new().preemptions(2), || {
        let pool = Arc::new(Pool {
            ready: AtomicUsize::fresh(1),
            run: AtomicUsize::fresh(0),
            closing: Closing::new(),
            events: EventCount::new(),
        });
        (0..2).for_each(|_| pool.closing.enlist());
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.drain(1))
        };
        pool.drain(0);
        // Nobody leaves before all is over. How many have run depends on who took the first: one of the two creates another.
        assert!(!pool.is_ready());
        let run = pool.run.load(Ordering::Relaxed);
        assert!(run >= 1);
        other.join().unwrap();
        assert_eq!(pool.run.load(Ordering::Relaxed), run, "a task ran after all was over");
    });
}
