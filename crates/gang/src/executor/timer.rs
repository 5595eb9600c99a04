//! The timer: a thread that ends quanta, and evicts members that have not left their processors.
//! It sleeps without a deadline unless two slots take turns.

use std::io;
use std::sync::Arc;

use stanchion_machine::thread::{self, JoinHandle};

use super::core::Core;
use crate::scheduler::Turn;

/// Starts the timer of an executor.
pub(super) fn start(core: Arc<Core>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("gang-timer".into()).spawn(move || run(&core))
}

fn run(core: &Core) {
    let scheduler = &core.scheduler;
    scheduler.preemption().begin_timer();
    let mut checked = Turn::FIRST;
    let mut preferred = Vec::new();
    loop {
        scheduler.timer.prepare();
        // Without the lock. Its owner may be waiting for the allocator, and the allocator's lock
        // for the turn of a member that was stopped in it.
        if core.is_over() {
            return;
        }
        let deadline = scheduler.tick(core.settings.grace_ns, &mut checked);
        scheduler.update_priorities(&mut preferred);
        scheduler.timer.park(deadline);
    }
}
