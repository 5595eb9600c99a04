//! A model of a worker's mailbox: no item is missed by a worker that sleeps for it.
//!
//! - `mailbox_awaited_bounded`. Threads: a worker that sleeps until there is an item; one that
//!   sends. Failure it looks for: the worker sleeps beside its item.
//!
//! It prints `model NAME: N executions`.

use stanchion_activations_loom::__internal::Mailbox;
use stanchion_machine::clock::Deadline;
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};

/// Sleeps until `count` items have come, and returns their sum.
fn await_items(mailbox: &Mailbox<u32>, count: usize) -> u32 {
    let (mut sum, mut come) = (0, 0);
    loop {
        mailbox.take(|item| {
            sum += item;
            come += 1;
        });
        if come == count {
            return sum;
        }
        mailbox.wait(Deadline::NEVER);
    }
}

#[test]
fn mailbox_awaited_bounded() {
    let executions = Model::new().preemptions(2).choices(0).check(|| {
        let mailbox = Arc::new(Mailbox::new());
        let sender = {
            let mailbox = mailbox.clone();
            thread::spawn(move || mailbox.send(7))
        };
        assert_eq!(await_items(&mailbox, 1), 7);
        sender.join().unwrap();
        assert!(!mailbox.is_full() && !mailbox.is_awaited());
    });
    println!("model mailbox_awaited_bounded: {executions}");
}
