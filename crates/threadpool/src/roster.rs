//! Which seats of a pool have a thread, and how threads come and go.
//!
//! ```text
//! seat      0 … target-1      … regular-1 | regular …            … all
//!           members           free        | spares: serving, idle, free
//! ```
//!
//! Members come and go with [`resize`](crate::ThreadPool::set_num_threads). Spares take the place of members that are blocked, for as long as those are: as
//! many serve as there are leases; the others sleep until they are needed again.
//!
//! # Invariants
//!
//! 1. All of it is touched under its lock only. A thread is started, and told that it may serve, under it.
//! 2. `serving <= leases` is restored by the spares: one that sees more serving than leases stops between two tasks.

use std::collections::VecDeque;
use std::io;

use machine::thread::JoinHandle;

/// The threads of a pool (Invariant 1).
pub(crate) struct Roster {
    /// What became of each seat's thread.
    pub(crate) handles: Vec<Option<JoinHandle<()>>>,
    /// Members: the seats below.
    pub(crate) target: usize,
    /// The seats from here on are for spares.
    pub(crate) regular: usize,
    pub(crate) idle_spares: VecDeque<usize>,
    /// Spares that were started; they have the first seats from `regular` on.
    pub(crate) spares: usize,
    pub(crate) serving: usize,
    pub(crate) leases: usize,
    pub(crate) closed: bool,
    pub(crate) names: Option<Box<dyn FnMut(usize) -> String + Send>>,
    pub(crate) stack_size: Option<usize>,
}

impl Roster {
    pub(crate) fn new(regular: usize, spares: usize) -> Self {
        Self {
            handles: core::iter::repeat_with(|| None).take(regular + spares).collect(),
            target: 0,
            regular,
            idle_spares: VecDeque::new(),
            spares: 0,
            serving: 0,
            leases: 0,
            closed: false,
            names: None,
            stack_size: None,
        }
    }

    /// Starts a thread for `seat` that runs `body`.
    pub(crate) fn start(
        &mut self,
        seat: usize,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let mut builder = machine::thread::Builder::new();
        if let Some(names) = &mut self.names {
            builder = builder.name(names(seat));
        }
        if let Some(bytes) = self.stack_size {
            builder = builder.stack_size(bytes);
        }
        self.handles[seat] = Some(builder.spawn(body)?);
        Ok(())
    }
}
