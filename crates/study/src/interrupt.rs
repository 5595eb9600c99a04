//! Ctrl-C: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user has asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to listen; SIGTERM counts as Ctrl-C.
    ///
    /// Ending at once on the second signal leaves no half-written file: files appear under their
    /// names by renaming only.
    pub fn listen() -> Result<Self, ctrlc::Error> {
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        ctrlc::set_handler(move || {
            // Relaxed: the flag publishes nothing but itself; whoever sees it late measures one
            // cell more.
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })?;
        Ok(interrupt)
    }

    /// Returns whether the user has asked to stop.
    pub fn asked(&self) -> bool {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}
