//! A model of the whole executor: its timer, its threads, and the lock over its matrix.
//!
//! `executor_allocation_meets_completion_bounded` has four threads: the timer, a member of the
//! first gang, one of the second, and the thread that spawns both. None is preempted: they change
//! where they wait.
//!
//! The parts are modelled with preemptions in `scheduler.rs` and `completion.rs`. Here there are
//! none: gangs without their types are shared by the standard library's `Arc`, and the explorer
//! does not see its counts.

use stanchion_gang_loom::GangExecutor;
use stanchion_machine::Model;
use stanchion_models::explore;

#[test]
fn executor_allocation_meets_completion_bounded() {
    explore("executor_allocation_meets_completion_bounded", Model::new().preemptions(0), || {
        let executor = GangExecutor::builder().processors(1).slots(2).build().expect("small");
        let first = executor.spawn(1, |_| Ok(1)).expect("there is room");
        // The first gang may end before, while and after this one finds its processor. The two may
        // be united, or take turns.
        let second = executor.spawn(1, |_| Ok(2)).expect("there is room");
        assert_eq!(second.join().expect("no panic"), [2]);
        assert_eq!(first.join().expect("no panic"), [1]);
        assert_eq!(executor.metrics().slots_used, 0);
        executor.shutdown();
    });
}
