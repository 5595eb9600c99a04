//! The workers of a runtime: their records and their kernel threads.
//!
//! # Invariants
//!
//! 1. Workers are added and never removed: those below `started` have a kernel thread.

use std::io;

use stanchion_competitive::Mutex;
use stanchion_machine::thread::{Builder, JoinHandle as KernelThread};
use stanchion_machine::topology::Affinity;

use crate::processors::worker_record::WorkerRecord;
use crate::stats::live_threads::ThreadCounts;

/// The part of a runtime's state with its workers.
pub(crate) struct Workers {
    /// A record for each worker there may be.
    records: Box<[WorkerRecord]>,
    /// The kernel threads that have been started. Changed by the thread that starts one.
    threads: Mutex<KernelThreads>,
    /// The processors on which the kernel threads may run, whichever thread starts them.
    affinity: Affinity,
}

/// The kernel threads of a runtime. Added by the threads that start them.
#[derive(Default)]
struct KernelThreads {
    /// Those that no thread has joined.
    handles: Vec<KernelThread<()>>,
    /// The number of workers that have been started (Invariant 1).
    started: usize,
}

impl Workers {
    /// Returns the records of so many workers, none of which is started. Those below `slots` own
    /// the slot of their number.
    pub(crate) fn new(most: usize, slots: usize, affinity: Affinity) -> Self {
        let record = |index| WorkerRecord::new((index < slots).then_some(index));
        Self {
            records: (0..most).map(record).collect(),
            threads: Mutex::new(KernelThreads::default()),
            affinity,
        }
    }

    pub(crate) fn record(&self, worker: usize) -> &WorkerRecord {
        &self.records[worker]
    }

    /// Starts the kernel thread of the next worker, which calls `main` with the worker's number.
    /// Returns that number; `None` if all workers have been started.
    pub(crate) fn start(
        &self,
        main: impl FnOnce(usize) + Send + 'static,
    ) -> io::Result<Option<usize>> {
        let mut threads = self.threads.lock();
        let index = threads.started;
        if index == self.records.len() {
            return Ok(None);
        }
        let handle = self.spawn(format!("worker-{index}"), move || main(index))?;
        threads.handles.push(handle);
        threads.started += 1;
        Ok(Some(index))
    }

    /// Starts a kernel thread that is no worker.
    pub(crate) fn start_other(
        &self,
        name: &str,
        main: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let handle = self.spawn(name.into(), main)?;
        self.threads.lock().handles.push(handle);
        Ok(())
    }

    fn spawn(
        &self,
        name: String,
        main: impl FnOnce() + Send + 'static,
    ) -> io::Result<KernelThread<()>> {
        let affinity = self.affinity.clone();
        Builder::new().name(name).spawn(move || {
            affinity.adopt();
            main();
        })
    }

    /// Returns the number of workers that have been started.
    pub(crate) fn started(&self) -> usize {
        self.threads.lock().started
    }

    /// Returns whether all workers have been started.
    pub(crate) fn are_all_started(&self) -> bool {
        self.started() == self.records.len()
    }

    /// Returns the records of the workers that have been started.
    pub(crate) fn started_records(&self) -> impl Iterator<Item = &WorkerRecord> {
        self.records[..self.started()].iter()
    }

    /// Returns the thread counts of all workers.
    pub(crate) fn counts(&self) -> impl Iterator<Item = &ThreadCounts> + Clone {
        self.records.iter().map(WorkerRecord::counts)
    }

    /// Waits until all kernel threads have ended. A worker that ends may have started another one.
    pub(crate) fn join_all(&self) {
        loop {
            let Some(thread) = self.threads.lock().handles.pop() else { return };
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "workers catch the panics of their threads");
        }
    }
}
