//! Models of a process that changes between barriers of the kernel and fences on both sides. A
//! publisher writes a word, uses the light side, and reads the announcer's word. The announcer
//! writes its word, uses the heavy side, and reads the publisher's. In each mode, and while it
//! changes, at least one sees the other's write.
//!
//! Models of two threads are explored without a bound, the longest by `cargo xtask loom --whole`.
//! `cargo test` explores those with 4 preemptions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering::Relaxed, Ordering::SeqCst, fence};
use stanchion_machine::modes::Modes;
use stanchion_machine::sharing::{Answer, Sharing};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_machine_loom as stanchion_machine;
use stanchion_models::brief::bounded;

use crate::interrupts::{AWAY, Caller, Processor, Publisher, one_sees_the_other};

/// The state that the threads share.
struct Shared {
    /// The mode of the process.
    modes: Modes,
    /// The processor of the publisher.
    processor: Processor,
    /// The publisher's word.
    published: AtomicU32,
    /// The announcer's word.
    announced: AtomicU32,
}

impl Shared {
    /// Makes a process that has registered, and uses barriers or fences.
    fn new(barriers: bool) -> Arc<Self> {
        let processor = Processor { wanted: AtomicU32::fresh(0), made: AtomicU32::fresh(AWAY) };
        let (published, announced) = (AtomicU32::fresh(0), AtomicU32::fresh(0));
        let shared = Self { modes: Modes::new(), processor, published, announced };
        shared.heavy(if barriers { Answer::Made } else { Answer::TooMany }, false);
        assert_eq!(shared.modes.period(), barriers.then_some(1));
        shared.processor.wanted.store(0, Relaxed);
        shared.processor.made.store(0, Relaxed);
        Arc::new(shared)
    }

    fn heavy(&self, answer: Answer, is_worth_a_try: bool) {
        self.modes.heavy(&Caller { processor: &self.processor, answer, is_worth_a_try });
    }

    fn caller(&self) -> Caller<'_> {
        Caller { processor: &self.processor, answer: Answer::Made, is_worth_a_try: false }
    }

    /// The publisher. Returns whether it has seen the announcement.
    fn publish(&self) -> bool {
        let caller = self.caller();
        self.published.store(1, Relaxed);
        self.processor.interrupt();
        self.modes.light(&caller);
        self.processor.interrupt();
        self.announced.load(Relaxed) == 1
    }

    /// The announcer. Returns whether it has seen what was published.
    fn announce(&self) -> bool {
        self.announced.store(1, Relaxed);
        self.heavy(Answer::Made, false);
        self.published.load(Relaxed) == 1
    }
}

/// Starts the publisher, which first does something else.
fn publisher(shared: &Arc<Shared>, first: impl FnOnce(&Shared) + Send + 'static) -> Publisher {
    let shared = shared.clone();
    thread::spawn(move || {
        first(&shared);
        let seen = shared.publish();
        shared.processor.switch();
        seen
    })
}

#[test]
fn barriers_alone() {
    let explored = Model::new().check(|| {
        let shared = Shared::new(true);
        let publishing = publisher(&shared, |shared| shared.processor.interrupt());
        one_sees_the_other(shared.announce(), publishing);
    });
    println!("model modes::barriers_alone: {explored}");
}

#[test]
fn fences_alone() {
    let explored = Model::new().check(|| {
        let shared = Shared::new(false);
        let publishing = publisher(&shared, |shared| shared.processor.interrupt());
        one_sees_the_other(shared.announce(), publishing);
    });
    println!("model modes::fences_alone: {explored}");
}

/// The announcer itself leaves barriers before it announces.
#[test]
fn from_barriers_to_fences() {
    let explored = Model::new().check(|| {
        let shared = Shared::new(true);
        let publishing = publisher(&shared, |shared| shared.processor.interrupt());
        shared.heavy(Answer::TooMany, false);
        assert_eq!(shared.modes.period(), None);
        one_sees_the_other(shared.announce(), publishing);
    });
    println!("model modes::from_barriers_to_fences: {explored}");
}

/// The publisher itself goes back to barriers before it publishes.
#[test]
fn from_fences_to_barriers() {
    let explored = bounded(Model::new(), 4, None).check(|| {
        let shared = Shared::new(false);
        let publishing = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.heavy(Answer::Made, true);
                assert_eq!(shared.modes.period(), Some(2));
                shared.published.store(1, Relaxed);
                // Only a barrier after this can come too late for the write.
                shared.processor.interrupt();
                let seen = shared.announced.load(Relaxed) == 1;
                shared.processor.switch();
                seen
            })
        };
        one_sees_the_other(shared.announce(), publishing);
    });
    println!("model modes::from_fences_to_barriers: {explored}");
}

/// A third thread changes the mode beside the two.
fn changed_by_another(barriers: bool) -> impl Fn() {
    move || {
        let shared = Shared::new(barriers);
        let publishing = publisher(&shared, |shared| shared.processor.interrupt());
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.heavy(Answer::TooMany, true))
        };
        one_sees_the_other(shared.announce(), publishing);
        other.join().unwrap();
    }
}

#[test]
fn another_thread_leaves_barriers_bounded() {
    let explored = Model::new().preemptions(3).check(changed_by_another(true));
    println!("model modes::another_thread_leaves_barriers_bounded: {explored}");
}

#[test]
fn another_thread_goes_back_to_barriers_bounded() {
    let explored = Model::new().preemptions(3).check(changed_by_another(false));
    println!("model modes::another_thread_goes_back_to_barriers_bounded: {explored}");
}

/// Another thread goes back to barriers, and the publisher keeps that it has seen that.
#[test]
fn a_publisher_keeps_the_period_bounded() {
    let explored = Model::new().preemptions(3).check(|| {
        let shared = Shared::new(false);
        let publishing = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.processor.interrupt();
                let free = shared.modes.period() == Some(2);
                shared.processor.interrupt();
                shared.published.store(1, Relaxed);
                if !free {
                    fence(SeqCst);
                }
                shared.processor.interrupt();
                let seen = shared.announced.load(Relaxed) == 1;
                shared.processor.switch();
                seen
            })
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.heavy(Answer::Made, true))
        };
        one_sees_the_other(shared.announce(), publishing);
        other.join().unwrap();
    });
    println!("model modes::a_publisher_keeps_the_period_bounded: {explored}");
}

/// A filter refuses the barrier that the announcer needs.
#[test]
fn a_barrier_is_refused() {
    let explored = bounded(Model::new(), 4, None).check(|| {
        let shared = Shared::new(true);
        let publishing = publisher(&shared, |shared| shared.processor.interrupt());
        shared.announced.store(1, Relaxed);
        shared.heavy(Answer::Refused, false);
        one_sees_the_other(shared.published.load(Relaxed) == 1, publishing);
    });
    println!("model modes::a_barrier_is_refused: {explored}");
}

/// The program ends the use of barriers, and then announces.
#[test]
fn barriers_are_ended() {
    let explored = bounded(Model::new(), 4, None).check(|| {
        let shared = Shared::new(true);
        let publishing = publisher(&shared, |shared| shared.processor.interrupt());
        let processor = &shared.processor;
        let caller = Caller { processor, answer: Answer::Refused, is_worth_a_try: false };
        shared.modes.refuse(&caller);
        one_sees_the_other(shared.announce(), publishing);
    });
    println!("model modes::barriers_are_ended: {explored}");
}

/// Another thread finds that barriers are refused, while the announcer is about to fence.
#[test]
fn another_thread_finds_the_refusal_bounded() {
    let explored = Model::new().preemptions(2).check(|| {
        let shared = Shared::new(true);
        let publishing = publisher(&shared, |shared| shared.processor.interrupt());
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.heavy(Answer::Refused, false))
        };
        shared.announced.store(1, Relaxed);
        shared.heavy(Answer::Refused, false);
        one_sees_the_other(shared.published.load(Relaxed) == 1, publishing);
        other.join().unwrap();
    });
    println!("model modes::another_thread_finds_the_refusal_bounded: {explored}");
}

/// A publisher that keeps by itself whether it fences is made to fence. The program may have ended
/// barriers before.
fn made_to_fence(answer: Answer, ended: bool) -> impl Fn() {
    move || {
        let shared = Shared::new(true);
        if ended {
            shared.processor.made.store(AWAY, Relaxed);
            shared.modes.refuse(&shared.caller());
            shared.processor.wanted.store(0, Relaxed);
            shared.processor.made.store(0, Relaxed);
        }
        let free = Arc::new(AtomicU32::fresh(1));
        let publishing = {
            let (shared, free) = (shared.clone(), free.clone());
            thread::spawn(move || {
                shared.processor.interrupt();
                shared.published.store(1, Relaxed);
                shared.processor.interrupt();
                if free.load(Relaxed) == 0 {
                    fence(SeqCst);
                }
                shared.processor.interrupt();
                let seen = shared.announced.load(Relaxed) == 1;
                shared.processor.switch();
                seen
            })
        };
        shared.announced.store(1, Relaxed);
        free.store(0, Relaxed);
        let processor = &shared.processor;
        let caller = Caller { processor, answer, is_worth_a_try: false };
        shared.modes.wait_until_visible(&caller);
        one_sees_the_other(shared.published.load(Relaxed) == 1, publishing);
    }
}

#[test]
fn what_was_published_is_visible_after_a_barrier() {
    let explored = Model::new().check(made_to_fence(Answer::Made, false));
    println!("model modes::what_was_published_is_visible_after_a_barrier: {explored}");
}

#[test]
fn what_was_published_is_visible_after_the_end_of_barriers() {
    let explored = Model::new().check(made_to_fence(Answer::Refused, true));
    println!("model modes::what_was_published_is_visible_after_the_end_of_barriers: {explored}");
}

#[test]
fn what_was_published_is_visible_after_a_refusal() {
    let explored = Model::new().check(made_to_fence(Answer::Refused, false));
    println!("model modes::what_was_published_is_visible_after_a_refusal: {explored}");
}

/// Two announcers want a barrier at the same time, and one may make it for both.
#[test]
fn announcers_share_barriers_bounded() {
    let explored = Model::new().preemptions(3).check(|| {
        let processor = Processor { wanted: AtomicU32::fresh(0), made: AtomicU32::fresh(0) };
        let words = [(); 3].map(|()| AtomicU32::fresh(0));
        let shared = Arc::new((Sharing::new(), processor, words));
        let announcer = |own: usize| {
            let shared = shared.clone();
            move || {
                let (sharing, processor, words) = &*shared;
                words[own].store(1, Relaxed);
                let caller = Caller { processor, answer: Answer::Made, is_worth_a_try: false };
                assert_eq!(sharing.barrier(&caller), Answer::Made);
                words[2].load(Relaxed) == 1
            }
        };
        let publisher = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (_, processor, words) = &*shared;
                words[2].store(1, Relaxed);
                processor.interrupt();
                let seen = [0, 1].map(|other| words[other].load(Relaxed) == 1);
                processor.switch();
                seen
            })
        };
        let second = thread::spawn(announcer(1));
        let by_announcers = [announcer(0)(), second.join().unwrap()];
        let by_publisher = publisher.join().unwrap();
        for (by_announcer, by_publisher) in by_announcers.into_iter().zip(by_publisher) {
            assert!(by_announcer || by_publisher, "each missed the other's write");
        }
    });
    println!("model modes::announcers_share_barriers_bounded: {explored}");
}

/// One of two announcers is refused. The state that it leaves ends no barrier of the other one.
#[test]
fn a_refused_announcer_ends_no_barrier_bounded() {
    let explored = Model::new().preemptions(3).check(|| {
        let processor = Processor { wanted: AtomicU32::fresh(0), made: AtomicU32::fresh(0) };
        let words = [(); 2].map(|()| AtomicU32::fresh(0));
        let shared = Arc::new((Sharing::new(), processor, words));
        let call = |answer| {
            let shared = shared.clone();
            move || {
                let (sharing, processor, words) = &*shared;
                if answer == Answer::Made {
                    words[0].store(1, Relaxed);
                }
                let caller = Caller { processor, answer, is_worth_a_try: false };
                let answered = sharing.barrier(&caller);
                (answered, words[1].load(Relaxed) == 1)
            }
        };
        let publisher = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (_, processor, words) = &*shared;
                words[1].store(1, Relaxed);
                processor.interrupt();
                let seen = words[0].load(Relaxed) == 1;
                processor.switch();
                seen
            })
        };
        let refused = thread::spawn(call(Answer::Refused));
        let (answer, by_announcer) = call(Answer::Made)();
        assert_eq!(answer, Answer::Made);
        // It may have met a barrier that the other one made.
        let _ = refused.join().unwrap();
        let by_publisher = publisher.join().unwrap();
        assert!(by_announcer || by_publisher, "each missed the other's write");
    });
    println!("model modes::a_refused_announcer_ends_no_barrier_bounded: {explored}");
}

/// The kernel's barrier of these models is needed: without interrupts the free side misses the
/// other.
#[test]
fn a_fence_of_the_announcer_alone_is_not_enough() {
    let model = || {
        Model::new().check(|| {
            let shared = Shared::new(true);
            let publishing = publisher(&shared, |shared| shared.processor.interrupt());
            shared.announced.store(1, Relaxed);
            fence(SeqCst);
            one_sees_the_other(shared.published.load(Relaxed) == 1, publishing);
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(model)).is_err());
}
