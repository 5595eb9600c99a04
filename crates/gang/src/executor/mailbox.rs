//! A thread's desk: where it finds what it is to do next.

use std::sync::Arc;

use machine::clock::Deadline;
use stanchion_competitive::Mutex;

use super::core::GangExecutor;
use crate::matrix::GangKey;
use crate::scheduler::Parker;
use crate::state::SpawnedGang;

/// To be a member of a gang.
pub(crate) struct MemberTask {
    pub(crate) gang: Arc<dyn SpawnedGang>,
    /// The gang's name in the matrix.
    pub(crate) key: GangKey,
    pub(crate) executor: GangExecutor,
    pub(crate) index: usize,
    pub(crate) entities: Arc<[usize]>,
}

pub(crate) enum Command {
    Run(MemberTask),
    Exit,
}

pub(crate) struct Mailbox {
    parker: Parker,
    command: Mutex<Option<Command>>,
}

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self { parker: Parker::new(), command: Mutex::new(None) }
    }

    /// Says what is to be done next. One at a time.
    pub(crate) fn send(&self, command: Command) {
        *self.command.lock() = Some(command);
        self.parker.unpark();
    }

    /// Sleeps until there is something to do.
    pub(crate) fn receive(&self) -> Command {
        loop {
            self.parker.prepare();
            if let Some(command) = self.command.lock().take() {
                self.parker.cancel();
                return command;
            }
            self.parker.park(Deadline::NEVER);
        }
    }
}
