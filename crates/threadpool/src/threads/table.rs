//! Which seats of a pool have a thread, and how threads come and go.
//!
//! ```text
//! slot      0 … members-1      … first_spare-1 | first_spare …            … all
//!           members           free        | spares: active_spares, idle, free
//! ```
//!
//! Members come and go with [`resize`](crate::ThreadPool::set_num_threads). Spares take the place
//! of members that are blocked, for as long as those are: as many serve as there are leases; the
//! others sleep until they are needed again.
//!
//! # Invariants
//!
//! 1. All of it is touched under its lock only. A thread is started, and told that it may serve,
//!    under it; no thread is waited for under it, and no function of the user's is called.
//! 2. `active_spares <= leases` is restored by the spares: one that sees more serving than leases stops
//!    between two tasks. A lease for which there is no spare counts all the same: the next spare
//!    that would stop serves it.
//! 3. A spare is in `idle_spares` from the moment that `active_spares` does not count it any more, so
//!    that it is never out of reach.
//! 4. A thread that leaves an open pool looks last of all, under the lock, whether its seat is a
//!    member's again or has mail, and begins again if so; if the pool was closed meanwhile, whoever
//!    did has looked. Otherwise it takes itself out of `handles`, and the seat is free.

use std::collections::VecDeque;
use std::io;
use std::panic::{self, AssertUnwindSafe};

use machine::topology::{self, Affinity};
use stanchion_competitive::Mutex;

use crate::threads::custom::ThreadHandle;

/// The threads of a pool (Invariant 1).
pub(crate) struct ThreadTable {
    /// Each seat's thread, if it has one (Invariant 4).
    pub(crate) handles: Vec<Option<ThreadHandle>>,
    /// Each seat's last thread, which is through and may be about to end.
    pub(crate) ended: Vec<Option<ThreadHandle>>,
    /// Seats whose threads had left when the pool was closed, and begin again all the same.
    pub(crate) restarts: Box<[bool]>,
    /// Seats whose threads have ended, or never came, and that no other thread gets.
    pub(crate) abandoned: Box<[bool]>,
    /// Members: the seats below.
    pub(crate) members: usize,
    /// The seats from here on are for spares.
    pub(crate) first_spare: usize,
    pub(crate) idle_spares: VecDeque<usize>,
    /// Spares that were started; they have the first seats from `first_spare` on.
    pub(crate) started_spares: usize,
    pub(crate) active_spares: usize,
    pub(crate) leases: usize,
    pub(crate) closed: bool,
    pub(crate) stack_size: Option<usize>,
    /// Where the threads may run, whichever thread starts them.
    affinity: Affinity,
}

impl ThreadTable {
    pub(crate) fn new(first_spare: usize, spares: usize) -> Self {
        Self {
            handles: core::iter::repeat_with(|| None).take(first_spare + spares).collect(),
            ended: core::iter::repeat_with(|| None).take(first_spare + spares).collect(),
            restarts: vec![false; first_spare + spares].into_boxed_slice(),
            abandoned: vec![false; first_spare + spares].into_boxed_slice(),
            members: 0,
            first_spare,
            idle_spares: VecDeque::new(),
            started_spares: 0,
            active_spares: 0,
            leases: 0,
            closed: false,
            stack_size: None,
            affinity: topology::affinity(),
        }
    }

    /// Returns the seats of the members that have a thread.
    pub(crate) fn present_members(&self) -> impl Iterator<Item = usize> {
        (0..self.members).filter(|&slot| !self.abandoned[slot])
    }

    /// Starts a thread for `slot` that runs `body`.
    pub(crate) fn start(
        &mut self,
        slot: usize,
        name: Option<String>,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let mut builder = machine::thread::Builder::new();
        if let Some(name) = name {
            builder = builder.name(name);
        }
        if let Some(bytes) = self.stack_size {
            builder = builder.stack_size(bytes);
        }
        let affinity = self.affinity.clone();
        let body = move || {
            affinity.adopt();
            body();
        };
        self.handles[slot] = Some(ThreadHandle::Own(builder.spawn(body)?));
        Ok(())
    }
}

/// How the user names threads.
pub(crate) type Names = Box<dyn FnMut(usize) -> String + Send>;

/// Asks `names` for the name of a seat's thread. If it panics, or the system could not take the
/// name, that is an error: who hires may be about to wait for what lies on its stack, and must not
/// unwind.
pub(crate) fn name(names: &Mutex<Names>, slot: usize) -> io::Result<String> {
    let mut names = names.lock();
    let named = panic::catch_unwind(AssertUnwindSafe(|| names(slot)));
    drop(names);
    match named {
        Ok(name) if name.contains('\0') => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "`thread_name` gave {name:?} for thread {slot}: a name must not contain a zero byte"
            ),
        )),
        Ok(name) => Ok(name),
        Err(payload) => {
            let said = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned());
            // Dropping it may panic as well.
            core::mem::forget(payload);
            let said = said.unwrap_or_else(|| "no text".to_owned());
            Err(io::Error::other(format!(
                "`thread_name` panicked for thread {slot} ({said}): it must give a name to spare threads too"
            )))
        }
    }
}
