//! What is asked of a carrier: how it stands, and whether it has mail. Its mail orders nothing.

use machine::atomic::{AtomicBool, Fresh, Ordering};

use crate::standing::Standing;

pub(crate) struct Carrier {
    standing: Standing,
    has_mail: AtomicBool,
}

impl Carrier {
    pub(crate) fn new(standing: Standing) -> Self {
        Self { standing, has_mail: AtomicBool::fresh(false) }
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Relaxed)
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
