//! Models of the asymmetric barrier: of two threads that write one word and read the other's, at least one sees the other's write.
//!
//! Both sides are fences here, which is what the kernel's barrier stands for; the models without one of them say that both are needed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use machine::asymmetric::{heavy, light};
use machine::atomic::{AtomicU32, Fresh, Ordering::Relaxed};
use machine::sync::Arc;
use machine::{Model, thread};
use stanchion_machine_loom as machine;

/// Dekker's pattern with these two barriers.
fn one_sees_the_other(often: fn(), seldom: fn()) -> impl Fn() {
    move || {
        let words = Arc::new((AtomicU32::fresh(0), AtomicU32::fresh(0)));
        let other = {
            let words = words.clone();
            thread::spawn(move || {
                words.0.store(1, Relaxed);
                often();
                words.1.load(Relaxed)
            })
        };
        words.1.store(1, Relaxed);
        seldom();
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

/// A release that does not see the announcement comes before the sleeper's look: nobody sleeps on a free lock.
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
        assert!(!sleeps || wakes, "asleep, and nobody will wake it");
    });
    println!("model asymmetric::an_announcement_is_seen: {explored}");
}

#[test]
fn neither_side_does_without() {
    fn nothing() {}
    for (often, seldom) in [(nothing as fn(), heavy as fn()), (light, nothing)] {
        let alone = || Model::new().check(one_sees_the_other(often, seldom));
        assert!(catch_unwind(AssertUnwindSafe(alone)).is_err());
    }
}
