//! Models of the polls of a worker: a reader has the number and the place of one task.

#[allow(unreachable_pub, reason = "the crate re-exports it")]
#[path = "../../../../watch/src/polls.rs"]
mod polls;

use std::panic::Location;

use polls::{Polls, Task};
use stanchion_machine::Model;
use stanchion_machine::sync::Arc;
use stanchion_models::{beside, explore};

/// Returns two tasks of different places.
fn tasks() -> [Task; 2] {
    let (first, second) = (Location::caller(), Location::caller());
    assert_ne!(first, second);
    [Task { id: 1, spawned_at: first }, Task { id: 2, spawned_at: second }]
}

/// Begins the poll of a task.
fn begin(polls: &Polls, task: Task) {
    polls.begin(task.id, task.spawned_at);
}

/// Reads, and checks that the task is the one that the count belongs to.
fn check(polls: &Polls, tasks: [Task; 2]) {
    let (count, task) = polls.read();
    let expected = (count as usize).checked_sub(1).map(|index| tasks[index]);
    assert!(task.is_none() || task == expected, "{count} polls: {task:?}");
}

/// A worker goes from one task to the next while another thread reads.
#[test]
fn a_reader_has_one_task() {
    explore("polls::a_reader_has_one_task", Model::new(), || {
        let tasks = tasks();
        let polls = Arc::new(Polls::new());
        begin(&polls, tasks[0]);
        let reader = beside(&polls, move |polls| check(polls, tasks));
        polls.end();
        begin(&polls, tasks[1]);
        reader.join().unwrap();
        assert_eq!(polls.read(), (2, Some(tasks[1])));
    });
}

/// A worker begins its first poll while another thread reads.
#[test]
fn a_reader_meets_the_first_poll() {
    explore("polls::a_reader_meets_the_first_poll", Model::new(), || {
        let tasks = tasks();
        let polls = Arc::new(Polls::new());
        let reader = beside(&polls, move |polls| check(polls, tasks));
        begin(&polls, tasks[0]);
        polls.end();
        reader.join().unwrap();
        assert_eq!(polls.read(), (1, None));
    });
}

/// A worker polls two tasks while another thread reads.
#[test]
fn a_reader_has_one_task_of_two_bounded() {
    let model = Model::new().preemptions(3);
    explore("polls::a_reader_has_one_task_of_two_bounded", model, || {
        let tasks = tasks();
        let polls = Arc::new(Polls::new());
        let reader = beside(&polls, move |polls| check(polls, tasks));
        for task in tasks {
            begin(&polls, task);
            polls.end();
        }
        reader.join().unwrap();
        assert_eq!(polls.read(), (2, None));
    });
}
