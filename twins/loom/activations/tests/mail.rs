//! A model of a carrier's mail: none is missed by a carrier that sleeps for it.
//!
//! | model | threads | what would go wrong |
//! | --- | --- | --- |
//! | `mail_awaited_bounded` | a carrier that sleeps until there is mail; one that sends | it sleeps beside its mail |
//!
//! It prints `model NAME: N executions`.

#[path = "../../../../crates/activations/src/mail.rs"]
#[allow(dead_code, unreachable_pub)]
mod mail;

use machine::clock::Deadline;
use machine::sync::Arc;
use machine::{Model, thread};
use mail::Mail;

/// Sleeps until `count` items have come, and returns their sum.
fn awaits(mail: &Mail<u32>, count: usize) -> u32 {
    let (mut sum, mut come) = (0, 0);
    loop {
        mail.take(|item| {
            sum += item;
            come += 1;
        });
        if come == count {
            return sum;
        }
        mail.wait(Deadline::NEVER);
    }
}

#[test]
fn mail_awaited_bounded() {
    let executions = Model::new().preemptions(2).choices(0).check(|| {
        let mail = Arc::new(Mail::new());
        let sender = {
            let mail = mail.clone();
            thread::spawn(move || mail.send(7))
        };
        assert_eq!(awaits(&mail, 1), 7);
        sender.join().unwrap();
        assert!(!mail.is_there() && !mail.is_awaited());
    });
    println!("model mail_awaited_bounded: {executions}");
}
