//! The stacks of a model's threads serve many executions.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use stanchion_machine::atomic::{AtomicUsize, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_machine_loom as stanchion_machine;
use stanchion_models::stacks;

#[test]
fn a_thread_takes_the_stack_that_another_one_left() {
    let before = stacks::taken_again();
    let executions = Model::new().check(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let other = count.clone();
        let thread = thread::spawn(move || other.fetch_add(1, Ordering::Relaxed));
        count.fetch_add(1, Ordering::Relaxed);
        thread.join().unwrap();
    });
    let again = stacks::taken_again() - before;
    assert!(again >= 2, "{again} stacks of {executions}");
}
