//! Ctrl-C: the first one asks for an orderly end, the second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is set when the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to listen for Ctrl-C. SIGTERM counts as Ctrl-C.
    ///
    /// To end at once on the second signal leaves no half-written file, because files appear under
    /// their names only by renaming.
    pub fn listen() -> Result<Self, ctrlc::Error> {
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        ctrlc::set_handler(move || {
            // Relaxed: the flag publishes nothing but itself. A thread that sees it late measures
            // one more cell.
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })?;
        Ok(interrupt)
    }

    /// Returns true if the user has asked to stop.
    pub fn asked(&self) -> bool {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}
