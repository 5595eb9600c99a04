//! Models of the handshake: of two threads that write one word and read the other's, at least one
//! sees the other's write.
//!
//! Each model has a twin in [`neither_side_does_without_its_fence`] that leaves one fence out, and
//! fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering::Relaxed};
use stanchion_machine::handshake::{Handshake, Reach, Symmetric};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_machine_loom as stanchion_machine;

const ASYMMETRIC: Handshake = Handshake::new("published", "announced", Reach::AllThreads);
const SYMMETRIC: Handshake<Symmetric> =
    Handshake::symmetric("published", "announced", Reach::AllThreads);

fn light() {
    ASYMMETRIC.light();
}

fn light_while_free() {
    ASYMMETRIC.light_while_free();
}

fn heavy() {
    ASYMMETRIC.heavy();
}

fn fence() {
    SYMMETRIC.fence();
}

/// One publisher and one announcer with these fences.
fn one_sees_the_other(of_publisher: fn(), of_announcer: fn()) -> impl Fn() {
    move || {
        let words = Arc::new((AtomicU32::fresh(0), AtomicU32::fresh(0)));
        let publisher = {
            let words = words.clone();
            thread::spawn(move || {
                words.0.store(1, Relaxed);
                of_publisher();
                words.1.load(Relaxed)
            })
        };
        words.1.store(1, Relaxed);
        of_announcer();
        let (published, announced) = (words.0.load(Relaxed), publisher.join().unwrap());
        assert!(published == 1 || announced == 1, "each missed the other's write");
    }
}

/// A name, the publisher's fence, and the announcer's.
type Pair = (&'static str, fn(), fn());

/// Pairs of fences that order the two sides.
const PAIRS: [Pair; 4] = [
    ("light_and_heavy", light, heavy),
    ("light_while_free_and_heavy", light_while_free, heavy),
    ("heavy_and_heavy", heavy, heavy),
    ("fence_and_fence", fence, fence),
];

#[test]
fn one_of_the_two_sees_the_other() {
    for (name, of_publisher, of_announcer) in PAIRS {
        let explored = Model::new().check(one_sees_the_other(of_publisher, of_announcer));
        println!("model handshake::{name}: {explored}");
    }
}

#[test]
fn neither_side_does_without_its_fence() {
    fn nothing() {}
    for (_, of_publisher, of_announcer) in PAIRS {
        for (one, other) in [(nothing as fn(), of_announcer), (of_publisher, nothing)] {
            let alone = || Model::new().check(one_sees_the_other(one, other));
            assert!(catch_unwind(AssertUnwindSafe(alone)).is_err());
        }
    }
}

/// Two publishers and an announcer: no publication is lost, though the publishers may miss each
/// other's.
#[test]
fn each_publisher_shakes_hands_with_the_announcer() {
    let explored = Model::new().check(|| {
        let words = Arc::new(([AtomicU32::fresh(0), AtomicU32::fresh(0)], AtomicU32::fresh(0)));
        let publishers = [0, 1].map(|which| {
            let words = words.clone();
            thread::spawn(move || {
                words.0[which].store(1, Relaxed);
                ASYMMETRIC.light();
                words.1.load(Relaxed) != 0
            })
        });
        words.1.store(1, Relaxed);
        ASYMMETRIC.heavy();
        let found = [0, 1].map(|which| words.0[which].load(Relaxed) != 0);
        for (found, publisher) in found.into_iter().zip(publishers) {
            assert!(publisher.join().unwrap() || found, "a publication was lost");
        }
    });
    println!("model handshake::each_publisher_shakes_hands_with_the_announcer: {explored}");
}

#[test]
fn a_handshake_names_its_words_and_its_reach() {
    assert_eq!(ASYMMETRIC.words(), ["published", "announced"]);
    assert_eq!(SYMMETRIC.words(), ASYMMETRIC.words());
    let owner = Handshake::new("bottom", "top", Reach::OneThread);
    assert_ne!(owner.reach(), ASYMMETRIC.reach());
}
