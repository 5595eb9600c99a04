//! The clock: a thread that ends quanta, and puts those out of their seats who have not left them. Asleep without a deadline unless two slots take turns.

use std::io;
use std::sync::Arc;

use machine::thread::{self, JoinHandle};

use crate::executor::Shared;
use crate::gate::Round;

pub(crate) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("gang-clock".into()).spawn(move || run(&shared))
}

fn run(shared: &Shared) {
    let gate = &shared.gate;
    let mut checked = Round::FIRST;
    loop {
        gate.clock.listen();
        if shared.state.lock().is_over() {
            return;
        }
        let deadline = gate.tick(shared.settings.grace_ns, &mut checked);
        gate.clock.sleep(deadline);
    }
}
