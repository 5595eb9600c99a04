//! A model of the whole executor: its clock, its threads, and the lock over its matrix.
//!
//! | model | threads | bound |
//! | --- | --- | --- |
//! | `executor_allocation_meets_completion_bounded` | the clock, a member of the first gang and one of the second, who spawns both | none is preempted: they change where they wait |
//!
//! Its parts are modelled with preemptions in `gate.rs` and `ending.rs`. Here there are none: gangs without their types are shared by the standard
//! library's `Arc`, whose counts the explorer does not see.

use machine::Model;
use stanchion_gang_loom::GangExecutor;

fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

#[test]
fn executor_allocation_meets_completion_bounded() {
    explore("executor_allocation_meets_completion_bounded", Model::new().preemptions(0), || {
        let executor = GangExecutor::builder().processors(1).slots(2).build().expect("small");
        let first = executor.spawn(1, |_| Ok(1)).expect("there is room");
        // The first may end before, while and after this finds its place; it may be united with it, or take turns.
        let second = executor.spawn(1, |_| Ok(2)).expect("there is room");
        assert_eq!(second.join().expect("no panic"), [2]);
        assert_eq!(first.join().expect("no panic"), [1]);
        assert_eq!(executor.metrics().slots_used, 0);
        executor.shutdown();
    });
}
