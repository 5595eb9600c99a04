//! The files of which a thread consists, and what they ask of the rest that the models answer alike. A model that has these has their names at its root, where
//! the files look for each other.

#[path = "../../../../../crates/activations/src/ending.rs"]
pub(crate) mod ending;
#[path = "../../../../../crates/activations/src/handle.rs"]
pub(crate) mod handle;
#[path = "../../../../../crates/activations/src/home.rs"]
pub(crate) mod home;
#[path = "../../../../../crates/activations/src/locals.rs"]
pub(crate) mod locals;
#[path = "../../../../../crates/activations/src/packet.rs"]
pub(crate) mod packet;
#[path = "../../../../../crates/activations/src/panics.rs"]
pub(crate) mod panics;
#[path = "../../../../../crates/activations/src/priority.rs"]
pub(crate) mod priority;
#[path = "../../../../../crates/activations/src/process.rs"]
pub(crate) mod process;
#[path = "../../../../../crates/activations/src/shares.rs"]
pub(crate) mod shares;
#[path = "../../../../../crates/activations/src/state.rs"]
pub(crate) mod state;
#[path = "../../../../../crates/activations/src/thread.rs"]
pub(crate) mod thread;
#[path = "../../../../../crates/activations/src/timers.rs"]
pub(crate) mod timers;

/// No thread of a model lacks a stack.
pub(crate) mod stack {
    pub(crate) enum StackError {}
}

/// No kernel thread of a model is a carrier as far as the threads' own operations know.
pub(crate) mod local {
    use machine::clock::Deadline;

    use crate::thread::Thread;

    pub(crate) fn current_pointer() -> *const Thread {
        core::ptr::null()
    }

    pub(crate) fn give_way() {}

    pub(crate) fn yield_thread() -> bool {
        false
    }

    pub(crate) fn park_thread() -> Option<()> {
        None
    }

    pub(crate) fn pause_thread(_: Deadline) -> bool {
        false
    }
}
