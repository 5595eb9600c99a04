//! Models of the asymmetric fences: of two threads that each write one word and read the other
//! thread's word, at least one sees the other's write.
//!
//! Under loom both sides are ordinary fences. The heavy one stands for the kernel's barrier.
//! [`each_side_needs_its_fence`] leaves one of the two out, and must fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stanchion_machine::asymmetric::{heavy, light};
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering::Relaxed};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_machine_loom as stanchion_machine;

/// Dekker's pattern. The two sides call `of_publisher` and `of_announcer` as their fences.
fn one_sees_the_other(of_publisher: fn(), of_announcer: fn()) -> impl Fn() {
    move || {
        let words = Arc::new((AtomicU32::fresh(0), AtomicU32::fresh(0)));
        let other = {
            let words = words.clone();
            thread::spawn(move || {
                words.0.store(1, Relaxed);
                of_publisher();
                words.1.load(Relaxed)
            })
        };
        words.1.store(1, Relaxed);
        of_announcer();
        let (seen, by_other) = (words.0.load(Relaxed), other.join().unwrap());
        assert!(seen == 1 || by_other == 1, "each missed the other's write");
    }
}

#[test]
fn light_pairs_with_heavy() {
    let explored = Model::new().check(one_sees_the_other(light, heavy));
    println!("model asymmetric::light_pairs_with_heavy: {explored}");
}

#[test]
fn heavy_pairs_with_heavy() {
    let explored = Model::new().check(one_sees_the_other(heavy, heavy));
    println!("model asymmetric::heavy_pairs_with_heavy: {explored}");
}

/// If a release does not see the announcement, then the sleeper's load sees the release. So no
/// thread sleeps on a free lock.
#[test]
fn an_announcement_is_seen() {
    let explored = Model::new().check(|| {
        let words = Arc::new((AtomicU32::fresh(1), AtomicU32::fresh(0)));
        let releaser = {
            let words = words.clone();
            thread::spawn(move || {
                words.0.store(0, Relaxed);
                light();
                words.1.load(Relaxed) != 0
            })
        };
        words.1.fetch_add(1, Relaxed);
        heavy();
        let sleeps = words.0.load(Relaxed) == 1;
        let wakes = releaser.join().unwrap();
        assert!(!sleeps || wakes, "the waiter sleeps, and the releaser does not wake it");
    });
    println!("model asymmetric::an_announcement_is_seen: {explored}");
}

#[test]
fn each_side_needs_its_fence() {
    fn nothing() {}
    for (of_publisher, of_announcer) in [(nothing as fn(), heavy as fn()), (light, nothing)] {
        let alone = || Model::new().check(one_sees_the_other(of_publisher, of_announcer));
        assert!(catch_unwind(AssertUnwindSafe(alone)).is_err());
    }
}
