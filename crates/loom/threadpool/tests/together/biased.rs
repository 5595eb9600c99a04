//! Models of the biased lock of a ready queue.
//!
//! Each line names a model, its threads, and the error that it would show: both are inside (a race
//! in the cell), or an update is lost.
//!
//! - `biased_owner_and_thief`: the owner, a thief, on a biased lock.
//! - `biased_two_thieves_bounded`: the owner, two thieves. A thief comes in beside another, or
//!   after it without what it did.
//! - `bias_ends_bounded`: a thief comes twice: by an interrupt, then without one.
//! - `bias_begins`: the owner enters with a fence, then without one, while a thief comes.
//!
//! `bias_begins` is explored without a bound by `cargo xtask loom --whole`, and with 4 preemptions
//! by `cargo test`. The last two models make the kernel's barrier by hand
//! ([`stanchion_models::interrupts`]). Loom's `light` is a fence, which would hide that a thief has
//! left the interrupt out.

use stanchion_machine::Model;
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering::SeqCst, fence};
use stanchion_machine::sync::Arc;
use stanchion_models::brief::bounded;
use stanchion_models::interrupts::Processor;
use stanchion_models::{beside, explore};
use stanchion_threadpool_loom::__internal::{Barrier, BiasedLock};

fn steal<B: Barrier>(value: &BiasedLock<u32, B>) -> u32 {
    u32::from(value.try_with_thief(|value| *value += 1).is_some())
}

fn own<B: Barrier>(value: &BiasedLock<u32, B>) -> u32 {
    // SAFETY: called by one thread of each model, and not inside itself.
    unsafe {
        value.with_owner(|value| {
            *value += 1;
            *value
        })
    }
}

#[test]
fn biased_owner_and_thief() {
    explore("biased_owner_and_thief", Model::new(), || {
        let value = Arc::new(BiasedLock::new(0));
        let thief = beside(&value, steal);
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
        let value = Arc::new(BiasedLock::new(0));
        let thieves = [(); 2].map(|()| beside(&value, steal));
        own(&value);
        let stolen: u32 = thieves.into_iter().map(|thief| thief.join().unwrap()).sum();
        assert_eq!(own(&value), 2 + stolen);
    });
}

/// The processor of the owner.
struct Interrupts(Processor);

// SAFETY: `heavy` waits until the owner has fenced or is away.
unsafe impl Barrier for Interrupts {
    fn light(&self) {
        self.0.interrupt();
    }

    fn heavy(&self) {
        // SeqCst, both: the caller's part of the barrier.
        fence(SeqCst);
        self.0.await_interrupt();
        fence(SeqCst);
    }

    fn interruptible(&self, wait: impl FnOnce()) {
        self.0.switch();
        wait();
        self.0.come_back();
    }
}

/// The owner, which is on its processor, enters `entries` times beside `thefts` of a thief.
fn interrupted(biased: bool, entries: u32, thefts: u32) -> impl Fn() {
    move || {
        let processor = Processor { wanted: AtomicU32::fresh(0), made: AtomicU32::fresh(0) };
        let value = Arc::new(BiasedLock::with_barrier(0, Interrupts(processor), biased));
        let owner = beside(&value, move |value| {
            for _ in 0..entries {
                // SAFETY: this thread alone is the owner.
                unsafe {
                    value.with_owner(|inside| {
                        value.barrier().0.interrupt();
                        *inside += 1;
                    });
                }
                value.barrier().0.interrupt();
            }
            value.barrier().0.switch();
        });
        let stolen: u32 = (0..thefts).map(|_| steal(&value)).sum();
        owner.join().unwrap();
        assert_eq!(own(&value), entries + stolen + 1);
    }
}

#[test]
fn bias_ends_bounded() {
    explore("bias_ends_bounded", Model::new().preemptions(4), interrupted(true, 2, 2));
}

#[test]
fn bias_begins() {
    explore("bias_begins", bounded(Model::new(), 4, None), interrupted(false, 2, 1));
}
