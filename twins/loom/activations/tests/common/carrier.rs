//! What is asked of a carrier: how it stands, and whether it has mail. Its mail orders nothing.

use machine::atomic::{AtomicBool, Fresh, Ordering};

use crate::priority::Priority;
use crate::standing::Standing;

pub(crate) struct Carrier {
    standing: Standing,
    has_mail: AtomicBool,
    /// The priority of the threads that it is mailed.
    mail_priority: Priority,
}

impl Carrier {
    pub(crate) fn new(standing: Standing) -> Self {
        Self::with_mail_priority(standing, Priority::Normal)
    }

    pub(crate) fn with_mail_priority(standing: Standing, mail_priority: Priority) -> Self {
        Self { standing, has_mail: AtomicBool::fresh(false), mail_priority }
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
    }

    pub(crate) fn mail_priority(&self) -> Option<Priority> {
        self.has_mail().then_some(self.mail_priority)
    }

    /// No thread of the models panics.
    pub(crate) fn awaits_mail(&self) -> bool {
        false
    }

    pub(crate) fn mail(&self) {
        self.has_mail.store(true, Ordering::Relaxed);
    }

    pub(crate) fn read_mail(&self) {
        self.has_mail.store(false, Ordering::Relaxed);
    }
}
