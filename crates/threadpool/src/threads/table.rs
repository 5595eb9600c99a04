//! The thread table: which slots of a pool have a thread.
//!
//! ```text
//! slot      0 … members-1     … first_spare-1 | first_spare …           … all
//!           members           free            | spares: active, idle, free
//! ```
//!
//! Members come and go with [`set_num_threads`](crate::ThreadPool::set_num_threads). Spares take
//! the place of members that are blocked, as long as those are. As many spares are active as there
//! are leases. The others sleep until they are needed again.
//!
//! # Invariants
//!
//! 1. The table is touched under its lock only. Threads are started, and spares signalled to take
//!    part, under the lock. No thread is waited for under it, and no function of the user's is
//!    called.
//! 2. The spares restore `active_spares <= leases`: a spare that sees more active spares than
//!    leases stops between two tasks. A lease for which there is no spare counts all the same: the
//!    next spare that would stop serves it.
//! 3. A spare is in `idle_spares` from the moment that `active_spares` does not count it any more,
//!    so it can always be found.
//! 4. A thread that leaves an open pool looks under the lock, last of all, whether its slot is a
//!    member's again or has calls. If so, it restarts. If the pool was closed meanwhile, the thread
//!    that closed it has looked. Otherwise the thread takes itself out of `handles`, and the slot
//!    is free.

use std::collections::VecDeque;
use std::io;
use std::panic::{self, AssertUnwindSafe};

use stanchion_competitive::Mutex;
use stanchion_machine::topology::{self, Affinity};

use crate::threads::ThreadHandle;

/// The threads of a pool (Invariant 1: all fields are written under the lock).
pub(crate) struct ThreadTable {
    /// Each slot's thread, if it has one (Invariant 4).
    pub(crate) handles: Vec<Option<ThreadHandle>>,
    /// Each slot's last thread, which is through and may be about to end.
    pub(crate) ended: Vec<Option<ThreadHandle>>,
    /// Slots with threads that had stopped when the pool was closed, and restart all the same.
    pub(crate) restarts: Box<[bool]>,
    /// Slots without a thread, because it has ended or never came, that no other thread gets.
    pub(crate) abandoned: Box<[bool]>,
    /// The number of members. They have the slots below.
    pub(crate) members: usize,
    /// Slots from here on are for spares.
    pub(crate) first_spare: usize,
    /// Spares that sleep, by slot (Invariant 3).
    pub(crate) idle_spares: VecDeque<usize>,
    /// Spares that were started. They have the first slots from `first_spare` on.
    pub(crate) started_spares: usize,
    /// Spares that take part (Invariant 2).
    pub(crate) active_spares: usize,
    /// Blocked threads for which a spare is to take part.
    pub(crate) leases: usize,
    /// True if the pool is closed.
    pub(crate) closed: bool,
    /// The size of the threads' stacks, if the builder was told one.
    pub(crate) stack_size: Option<usize>,
    /// The processors on which the threads may run, whichever thread starts them.
    affinity: Affinity,
}

impl ThreadTable {
    /// Creates a table of free slots.
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

    /// Returns the slots of the members that have a thread.
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
        let mut builder = stanchion_machine::thread::Builder::new();
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

/// The user's function that names threads.
pub(crate) type Names = Box<dyn FnMut(usize) -> String + Send>;

/// Asks `names` for the name of a slot's thread. If it panics, or gives a name that the system
/// cannot take, that is an error. The caller may be about to wait for a task that uses its stack,
/// so it must not unwind.
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
