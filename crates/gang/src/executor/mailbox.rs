//! A thread's desk: where it finds what it is to do next.

use std::sync::Arc;

use machine::clock::Deadline;
use stanchion_competitive::Mutex;

use super::core::GangExecutor;
use crate::gang::Run;
use crate::matrix::Gang as Name;
use crate::scheduler::Bell;

/// To be a member of a gang.
pub(crate) struct Order {
    pub(crate) gang: Arc<dyn Run>,
    /// The gang's name in the matrix.
    pub(crate) name: Name,
    pub(crate) executor: GangExecutor,
    pub(crate) index: usize,
    pub(crate) berths: Arc<[usize]>,
}

pub(crate) enum Mail {
    Order(Order),
    Leave,
}

pub(crate) struct Desk {
    bell: Bell,
    mail: Mutex<Option<Mail>>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { bell: Bell::new(), mail: Mutex::new(None) }
    }

    /// Says what is to be done next. One at a time.
    pub(crate) fn give(&self, mail: Mail) {
        *self.mail.lock() = Some(mail);
        self.bell.ring();
    }

    /// Sleeps until there is something to do.
    pub(crate) fn wait(&self) -> Mail {
        loop {
            self.bell.listen();
            if let Some(mail) = self.mail.lock().take() {
                self.bell.stay_awake();
                return mail;
            }
            self.bell.sleep(Deadline::NEVER);
        }
    }
}
