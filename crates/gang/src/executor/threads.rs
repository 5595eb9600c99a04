//! The threads of an executor. A member is a thread of the system, taken from the idle ones.
//!
//! Why a thread for each member, and not a stack that any thread runs: members block, hold locks of
//! other code, and have thread-locals. A switch costs as much as the system's.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use stanchion_machine::control::{self, Interrupted, Place};
use stanchion_machine::thread::{self, JoinHandle};
use stanchion_machine::topology;

use super::context::{Command, MemberContext, MemberTask, Pin, SpawnedGang};
use super::core::Core;
use super::mailbox::Mailbox;
use crate::panics::ignoring_panics;
use crate::scheduler::Preemption;

/// Starts a thread. It waits for commands in the mailbox that this returns.
pub(super) fn start(core: &Arc<Core>) -> io::Result<(Arc<Mailbox<Command>>, JoinHandle<()>)> {
    let mailbox = Arc::new(Mailbox::new());
    let mut builder = thread::Builder::new().name("gang-member".into());
    if let Some(bytes) = core.settings.stack_size {
        builder = builder.stack_size(bytes);
    }
    let handle = {
        let (core, mailbox) = (core.clone(), mailbox.clone());
        // The affinity of the whole process: a member that starts the thread may be pinned.
        let affinity = topology::affinity();
        builder.spawn(move || {
            affinity.adopt();
            run_commands(&core, &mailbox);
        })?
    };
    Ok((mailbox, handle))
}

fn run_commands(core: &Arc<Core>, mailbox: &Arc<Mailbox<Command>>) {
    let mut pin: Option<Pin> = None;
    core.scheduler.preemption().begin_member();
    while let Command::Run(gang, task) = mailbox.receive() {
        pin = run_member(core, mailbox, gang, task, pin);
    }
}

/// Runs a member of `gang` to its end.
fn run_member(
    core: &Arc<Core>,
    mailbox: &Arc<Mailbox<Command>>,
    gang: Arc<dyn SpawnedGang>,
    task: MemberTask,
    pin: Option<Pin>,
) -> Option<Pin> {
    let (state, key, executor) = (gang.state().clone(), task.key, task.executor.clone());
    let context = Rc::new(MemberContext::new(task, pin));
    let pin = {
        // Until the entity is about to be another member's.
        let _allowed = allow_interruption(core, context.entity());
        context.run(|context| {
            // SAFETY: called once for this member.
            unsafe { gang.run(context) };
            // This may drop the closure. The values that it owns may panic then.
            ignoring_panics(|| drop(gang));
            context.deactivate();
        })
    };
    core.scheduler.preemption().begin_member();
    if core.complete_member(&state, key, mailbox) {
        state.completion.set_done();
    }
    // Last of all: it may be the last handle, and send this thread the command to end.
    drop(executor);
    pin
}

/// The thread of an entity, as a signal handler sees it.
struct InterruptTarget {
    /// The executor's core.
    core: Arc<Core>,
    /// The entity that the thread runs.
    entity: usize,
}

// SAFETY: the place is the entity's, always the same. `interrupted` may run in a signal handler
// (`scheduler/enforcement.rs`).
unsafe impl Interrupted for InterruptTarget {
    fn place(&self) -> &Place {
        self.core.scheduler.control(self.entity)
    }

    fn interrupted(&self) {
        self.core.scheduler.interrupted(self.entity);
    }
}

/// Lets other threads interrupt the calling thread, which is about to run `entity`, if the executor
/// switches in a way that needs it.
fn allow_interruption(core: &Arc<Core>, entity: usize) -> Option<control::Allowed> {
    if core.scheduler.preemption() == Preemption::None {
        return None;
    }
    // The system may refuse, for example for lack of memory for the handler. Then the member leaves
    // its processor where it checks.
    control::allow(Arc::new(InterruptTarget { core: core.clone(), entity })).ok()
}
