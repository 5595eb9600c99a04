//! The clock: a thread that ends quanta, and puts those out of their seats who have not left them. Asleep without a deadline unless two slots take turns.

use std::io;
use std::sync::Arc;

use machine::thread::{self, JoinHandle};

use super::core::Core;
use crate::scheduler::Turn;

pub(crate) fn start(core: Arc<Core>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("gang-clock".into()).spawn(move || run(&core))
}

fn run(core: &Core) {
    let scheduler = &core.scheduler;
    scheduler.preemption().begin_timer();
    let mut checked = Turn::FIRST;
    let mut preferred = Vec::new();
    loop {
        scheduler.timer.prepare();
        // No lock: who has it may be waiting for the allocator, and that for the turn of a member that was stopped there.
        if core.timer_exits() {
            return;
        }
        let deadline = scheduler.tick(core.settings.grace_ns, &mut checked);
        scheduler.update_priorities(&mut preferred);
        scheduler.timer.park(deadline);
    }
}
