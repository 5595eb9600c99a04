//! The clock: a thread that ends quanta, and puts those out of their seats who have not left them. Asleep without a deadline unless two slots take turns.

use std::io;
use std::sync::Arc;

use machine::thread::{self, JoinHandle};

use super::core::Shared;
use crate::scheduler::Round;

pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("gang-clock".into()).spawn(move || run(&shared))
}

fn run(shared: &Shared) {
    let gate = &shared.gate;
    gate.force().begin_clock();
    let mut checked = Round::FIRST;
    let mut preferred = Vec::new();
    loop {
        gate.clock.listen();
        // No lock: who has it may be waiting for the allocator, and that for the turn of a member that was stopped there.
        if shared.is_over() {
            return;
        }
        let deadline = gate.tick(shared.settings.grace_ns, &mut checked);
        gate.prefer(&mut preferred);
        gate.clock.sleep(deadline);
    }
}
