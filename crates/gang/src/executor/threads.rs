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

use super::context::{Pin, Post};
use super::core::Shared;
use super::mailbox::{Desk, Mail, Order};
use crate::gang::quietly;
use crate::scheduler::Force;

/// The threads that somebody may have to wait for.
#[derive(Default)]
pub(crate) struct Threads {
    handles: Vec<JoinHandle<()>>,
    started: usize,
}

impl Threads {
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
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<(Arc<Desk>, JoinHandle<()>)> {
    let desk = Arc::new(Desk::new());
    let mut builder = thread::Builder::new().name("gang-member".into());
    if let Some(bytes) = shared.settings.stack_size {
        builder = builder.stack_size(bytes);
    }
    let handle = {
        let (shared, desk) = (shared.clone(), desk.clone());
        // Not that of one slot, if a member starts it.
        let affinity = topology::affinity();
        builder.spawn(move || {
            affinity.adopt();
            work(&shared, &desk);
        })?
    };
    Ok((desk, handle))
}

fn work(shared: &Arc<Shared>, desk: &Arc<Desk>) {
    let mut pin: Option<Pin> = None;
    shared.gate.force().begin_member();
    while let Mail::Order(order) = desk.wait() {
        pin = member(shared, desk, order, pin);
    }
}

/// Is a member of a gang until that member has ended.
fn member(shared: &Arc<Shared>, desk: &Arc<Desk>, order: Order, pin: Option<Pin>) -> Option<Pin> {
    let Order { gang, name, executor, index, berths } = order;
    let team = gang.team().clone();
    let post = Rc::new(Post::new(executor.clone(), index, berths, pin));
    let pin = {
        // Until the berth is about to be another's.
        let _reached = reach(shared, post.berth());
        post.during(|post| {
            // SAFETY: once, for this member.
            unsafe { gang.run(index, post) };
            // The closure, if nobody else has it: what it owns may panic when it is dropped.
            quietly(|| drop(gang));
            post.retire();
        })
    };
    shared.gate.force().begin_member();
    if shared.complete(&team, name, desk) {
        team.ending.set_done();
    }
    // Last of all: it may be the last handle, and tell this thread to end.
    drop(executor);
    pin
}

/// How others reach the thread of a member.
struct Reach {
    shared: Arc<Shared>,
    berth: usize,
}

// SAFETY: the place is the berth's, and `interrupted` may run in a handler (`gate/force.rs`).
unsafe impl Interrupted for Reach {
    fn place(&self) -> &Place {
        self.shared.gate.place(self.berth)
    }

    fn interrupted(&self) {
        self.shared.gate.interrupted(self.berth);
    }
}

/// Lets the calling thread, which is about to be the member at that berth, be taken off as the
/// executor does.
fn reach(shared: &Arc<Shared>, berth: usize) -> Option<control::Allowed> {
    if shared.gate.force() == Force::None {
        return None;
    }
    // Refused if there is no memory for its handler, for one: then it is taken off where it looks.
    control::allow(Arc::new(Reach { shared: shared.clone(), berth })).ok()
}
