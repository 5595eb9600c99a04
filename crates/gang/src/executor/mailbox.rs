//! A mailbox: where a thread finds its next command.

use stanchion_competitive::Mutex;
use stanchion_machine::clock::Deadline;

use crate::scheduler::Parker;

/// A mailbox for one command at a time, from which one thread receives.
pub(super) struct Mailbox<C> {
    /// The receiver sleeps on it.
    parker: Parker,
    /// The command that was sent and is not yet received.
    command: Mutex<Option<C>>,
}

impl<C> Mailbox<C> {
    pub(super) fn new() -> Self {
        Self { parker: Parker::default(), command: Mutex::new(None) }
    }

    /// Sends a command. The receiver has received the one before.
    pub(super) fn send(&self, command: C) {
        *self.command.lock() = Some(command);
        self.parker.unpark();
    }

    /// Sleeps until there is a command.
    pub(super) fn receive(&self) -> C {
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
