//! The start of an executor, and of a gang: it gets processors, threads and entities.

use std::sync::Arc;

use stanchion_machine::control;

use super::context::{Command, MemberTask, SpawnedGang};
use super::core::{Core, GangRecord};
use super::gang_executor::GangExecutor;
use super::settings::Settings;
use super::{threads, timer};
use crate::error::{BuildError, SpawnError};
use crate::matrix::Matrix;

impl GangExecutor {
    /// Starts an executor and its timer.
    pub(crate) fn start(
        settings: Settings,
        matrix: Matrix<GangRecord>,
    ) -> Result<Self, BuildError> {
        let core = Arc::new(Core::new(settings, matrix));
        let timer = timer::start(core.clone()).map_err(|source| BuildError::NoThread { source })?;
        core.lock().keep(vec![timer]);
        Ok(Self::of_core(core))
    }

    /// Finds processors and threads for a gang, and lets it begin.
    pub(crate) fn launch(&self, gang: &Arc<dyn SpawnedGang>) -> Result<(), SpawnError> {
        let core = self.core();
        // If this is a member, an interruption on the way would leave a gang of which only some
        // members have begun.
        let _deferred = control::defer();
        let (id, members) = (gang.state().id, gang.state().members());
        let (key, mut mailboxes) = core.reserve(id, members)?;
        let idle = mailboxes.len();
        let mut started = Vec::new();
        // There are not enough idle threads: start some.
        while mailboxes.len() < members {
            match threads::start(core) {
                Ok((mailbox, thread)) => {
                    mailboxes.push(mailbox);
                    started.push(thread);
                }
                // The system refuses one: undo everything.
                Err(source) => {
                    let with = mailboxes.len();
                    for mailbox in mailboxes.drain(idle..) {
                        mailbox.send(Command::Exit);
                    }
                    // The threads have nothing to do. The memory that they took of the system is
                    // free when this returns.
                    started.into_iter().for_each(|thread| drop(thread.join()));
                    core.cancel_reservation(key, mailboxes);
                    return Err(SpawnError::NoThread { started: with, asked: members, source });
                }
            }
        }
        let entities = core.start_gang(key, started);
        for (index, mailbox) in mailboxes.into_iter().enumerate() {
            let (executor, entities) = (self.clone(), entities.clone());
            let task = MemberTask { executor, key, index, entities };
            mailbox.send(Command::Run(gang.clone(), task));
        }
        Ok(())
    }
}
