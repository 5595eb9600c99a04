//! Models of the processor limit and its arbiter: a share that is out of date does not stay, nor
//! does a request for workers that sleep.
//!
//! - `limit_shares_worked_out_by_two_bounded`. Threads: two workers that ask for the share, a
//!   runtime that wants its half of two processors. Failure it looks for: the worker that looked
//!   first answers last, and its share stays.
//! - `limit_requests_of_two_that_sleep`. Threads: two workers that fall asleep. Failure it looks
//!   for: the first request comes last, and a processor without a worker stays taken.
//!
//! Each prints `model NAME: N executions`.

use stanchion_activations_loom::__internal::ProcessorLimit;
use stanchion_activations_loom::Arbiter;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// Returns the limit of a runtime with two slots on two processors, and another runtime's part.
fn shared() -> (Arc<ProcessorLimit>, Arbiter) {
    let [own, other] = Arbiter::pair(2);
    (Arc::new(ProcessorLimit::new(2, Some(own))), other)
}

#[test]
fn limit_shares_worked_out_by_two_bounded() {
    let model = Model::new().preemptions(3).choices(0);
    explore("limit_shares_worked_out_by_two_bounded", model, || {
        let (limit, other) = shared();
        let workers = [(), ()].map(|()| {
            let limit = limit.clone();
            thread::spawn(move || {
                limit.poll(false);
            })
        });
        other.ask_for(2);
        for worker in workers {
            worker.join().expect("no panic");
        }
        limit.poll(false);
        assert_eq!(limit.allowed(), 1, "each has a half");
    });
}

#[test]
fn limit_requests_of_two_that_sleep() {
    explore("limit_requests_of_two_that_sleep", Model::new(), || {
        let (limit, other) = shared();
        other.ask_for(2);
        let worker = {
            let limit = limit.clone();
            thread::spawn(move || limit.worker_sleeps())
        };
        limit.worker_sleeps();
        worker.join().expect("no panic");
        assert_eq!(other.share(), 2, "no worker is awake");
    });
}
