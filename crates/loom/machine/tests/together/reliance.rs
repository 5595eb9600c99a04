//! Models of a publisher that keeps by itself whether it fences, and says on which period of
//! barriers it relies. While that ends, at least one of it and the announcer sees the other's
//! write.
//!
//! The longest is explored without a bound by `cargo xtask loom --whole`. `cargo test` explores it
//! with 4 preemptions.

use stanchion_machine::atomic::{
    AtomicU32, Fresh, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst,
    fence,
};
use stanchion_machine::reliance::Reliance;
use stanchion_machine::sharing::{Answer, Kernel};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_machine_loom as stanchion_machine;
use stanchion_models::brief::bounded;

use crate::interrupts::{Caller, Processor, Publisher, one_sees_the_other};

/// A publisher that keeps by itself whether it fences, and the period of barriers, or 0.
struct Relying {
    /// The period on which the publisher relies.
    reliance: Reliance,
    /// 1 if the publisher must fence.
    must_fence: AtomicU32,
    /// The current period of barriers, or 0.
    period: AtomicU32,
    /// The processor of the publisher.
    processor: Processor,
    /// The publisher's word.
    published: AtomicU32,
    /// The announcer's word.
    announced: AtomicU32,
}

impl Relying {
    /// Makes a publisher that relies on period 1.
    fn new() -> Arc<Self> {
        let relying = Self {
            reliance: Reliance::fresh(),
            must_fence: AtomicU32::fresh(0),
            period: AtomicU32::fresh(1),
            processor: Processor { wanted: AtomicU32::fresh(0), made: AtomicU32::fresh(0) },
            published: AtomicU32::fresh(0),
            announced: AtomicU32::fresh(0),
        };
        relying.reliance.begins(1);
        Arc::new(relying)
    }

    fn current(&self) -> Option<u32> {
        let period = self.period.load(Acquire);
        (period != 0).then_some(period)
    }

    fn barrier(&self) {
        let processor = &self.processor;
        let caller = Caller { processor, answer: Answer::Made, is_worth_a_try: false };
        assert_eq!(caller.barrier(), Answer::Made);
    }

    /// Publishes. The publisher may first say once more that it relies on a period. Returns whether
    /// it has seen the announcement.
    fn publish(&self, begins: bool) -> bool {
        if let Some(now) = self.current().filter(|_| begins) {
            self.reliance.begins(now);
            self.must_fence.store(0, Relaxed);
            if !self.reliance.confirms(now, || self.current()) {
                self.must_fence.store(1, Relaxed);
            }
            self.processor.interrupt();
        }
        let fences = self.must_fence.load(Relaxed) == 1;
        self.published.store(1, Relaxed);
        if fences {
            fence(SeqCst);
        }
        self.processor.interrupt();
        self.announced.load(Relaxed) == 1
    }

    /// Ends the reliance if its period is over.
    fn end(&self) {
        if let Some(over) = self.reliance.outlived(|| self.current()) {
            self.reliance.end(over, || self.must_fence.store(1, Relaxed), || self.barrier());
        }
    }

    /// The announcer, after the period has ended: its heavy fence is a fence only.
    fn announce(&self) -> bool {
        self.announced.store(1, Relaxed);
        fence(SeqCst);
        self.end();
        self.published.load(Relaxed) == 1
    }
}

/// Starts the publisher.
fn publisher(relying: &Arc<Relying>, begins: bool) -> Publisher {
    let relying = relying.clone();
    thread::spawn(move || {
        let seen = relying.publish(begins);
        relying.processor.switch();
        seen
    })
}

/// A publisher says once more that it relies on the period, while that ends.
#[test]
fn a_publisher_relies_on_a_period_that_ends() {
    let explored = bounded(Model::new(), 4, None).check(|| {
        let relying = Relying::new();
        let publishing = publisher(&relying, true);
        relying.period.store(0, Release);
        // Its barrier is also the one that ends the period.
        relying.end();
        one_sees_the_other(relying.announce(), publishing);
    });
    println!("model reliance::a_publisher_relies_on_a_period_that_ends: {explored}");
}

/// The publisher writes, and then relies on the next period, which the announcer has begun.
#[test]
fn a_publisher_goes_on_to_the_next_period() {
    let explored = Model::new().check(|| {
        let relying = Relying::new();
        relying.period.store(0, Release);
        let publishing = {
            let relying = relying.clone();
            thread::spawn(move || {
                let seen = relying.publish(false);
                if let Some(next) = relying.current() {
                    relying.reliance.begins(next);
                }
                relying.processor.switch();
                seen
            })
        };
        relying.announced.store(1, Relaxed);
        fence(SeqCst);
        relying.period.store(2, Release);
        relying.end();
        one_sees_the_other(relying.published.load(Relaxed) == 1, publishing);
    });
    println!("model reliance::a_publisher_goes_on_to_the_next_period: {explored}");
}

/// Another thread ends the reliance, beside the announcer.
#[test]
fn another_thread_ends_the_reliance_bounded() {
    let explored = Model::new().preemptions(3).check(|| {
        let relying = Relying::new();
        relying.period.store(0, Release);
        let publishing = publisher(&relying, false);
        let other = {
            let relying = relying.clone();
            thread::spawn(move || relying.end())
        };
        one_sees_the_other(relying.announce(), publishing);
        other.join().unwrap();
    });
    println!("model reliance::another_thread_ends_the_reliance_bounded: {explored}");
}
