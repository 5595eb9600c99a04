//! The threads of an executor: a member is a thread of the system, taken from those that are idle.
//!
//! Why a thread a member and not a stack that any thread runs: members block, hold locks of others,
//! and have thread-locals. What a switch costs is that of the system.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use machine::control::{self, Interrupted, Place};
use machine::thread::{self, JoinHandle};
use machine::topology;

use super::context::{MemberContext, Pin};
use super::core::Core;
use super::mailbox::{Command, Mailbox, MemberTask};
use crate::scheduler::Preemption;
use crate::state::ignoring_panics;

/// The threads that somebody may have to wait for.
#[derive(Default)]
pub(crate) struct ThreadHandles {
    handles: Vec<JoinHandle<()>>,
    started: usize,
}

impl ThreadHandles {
    pub(crate) fn keep(&mut self, thread: JoinHandle<()>) {
        self.handles.push(thread);
        self.started += 1;
    }

    pub(crate) fn take(&mut self) -> Vec<JoinHandle<()>> {
        core::mem::take(&mut self.handles)
    }

    pub(crate) fn len(&self) -> usize {
        self.started
    }
}

/// Starts a thread, which waits at the desk that this returns.
pub(crate) fn start(core: &Arc<Core>) -> io::Result<(Arc<Mailbox>, JoinHandle<()>)> {
    let mailbox = Arc::new(Mailbox::new());
    let mut builder = thread::Builder::new().name("gang-member".into());
    if let Some(bytes) = core.settings.stack_size {
        builder = builder.stack_size(bytes);
    }
    let handle = {
        let (core, mailbox) = (core.clone(), mailbox.clone());
        // Not that of one slot, if a member starts it.
        let affinity = topology::affinity();
        builder.spawn(move || {
            affinity.adopt();
            worker_loop(&core, &mailbox);
        })?
    };
    Ok((mailbox, handle))
}

fn worker_loop(core: &Arc<Core>, mailbox: &Arc<Mailbox>) {
    let mut pin: Option<Pin> = None;
    core.scheduler.preemption().begin_member();
    while let Command::Run(order) = mailbox.receive() {
        pin = run_member(core, mailbox, order, pin);
    }
}

/// Is a member of a gang until that member has ended.
fn run_member(
    core: &Arc<Core>,
    mailbox: &Arc<Mailbox>,
    order: MemberTask,
    pin: Option<Pin>,
) -> Option<Pin> {
    let MemberTask { gang, key, executor, index, entities } = order;
    let state = gang.state().clone();
    let context = Rc::new(MemberContext::new(executor.clone(), index, entities, pin));
    let pin = {
        // Until the berth is about to be another's.
        let _reached = allow_interruption(core, context.entity());
        context.run(|context| {
            // SAFETY: once, for this member.
            unsafe { gang.run(index, context) };
            // The closure, if nobody else has it: what it owns may panic when it is dropped.
            ignoring_panics(|| drop(gang));
            context.deactivate();
        })
    };
    core.scheduler.preemption().begin_member();
    if core.complete_member(&state, key, mailbox) {
        state.completion.set_done();
    }
    // Last of all: it may be the last handle, and tell this thread to end.
    drop(executor);
    pin
}

/// How others reach the thread of a member.
struct InterruptTarget {
    core: Arc<Core>,
    entity: usize,
}

// SAFETY: the place is the berth's, and `interrupted` may run in a handler (`scheduler/preemption.rs`).
unsafe impl Interrupted for InterruptTarget {
    fn place(&self) -> &Place {
        self.core.scheduler.control(self.entity)
    }

    fn interrupted(&self) {
        self.core.scheduler.interrupted(self.entity);
    }
}

/// Lets the calling thread, which is about to be the member at that berth, be taken off as the
/// executor does.
fn allow_interruption(core: &Arc<Core>, entity: usize) -> Option<control::Allowed> {
    if core.scheduler.preemption() == Preemption::None {
        return None;
    }
    // Refused if there is no memory for its handler, for one: then it is taken off where it looks.
    control::allow(Arc::new(InterruptTarget { core: core.clone(), entity })).ok()
}
