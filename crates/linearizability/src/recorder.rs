//! Records the calls of real threads.
//!
//! Each call gets two moments, its beginning and its end. If the end of one call is earlier than
//! the beginning of another, the first call really was over when the other began. The clocks of
//! different processors do not promise that everywhere. So the moments are tickets: the threads
//! draw them from one word by fetch-and-add. All tickets have one order, and it agrees with time. A
//! call costs two locked instructions on that word. Its record goes into a vector of its thread.
//!
//! The tickets also order the calls themselves. They are drawn with Acquire and Release, so a call
//! that ended before another began happened before it. On a processor that reorders accesses,
//! recorded calls therefore see at least what they must. The check is about linearizability, not
//! about readers that nothing orders.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::history::Call;

/// Where the moments of one history come from.
///
/// ```
/// use std::sync::Mutex;
/// use stanchion_linearizability::specification::{Operation, Outcome, Stack};
/// use stanchion_linearizability::{History, Recorder, check};
///
/// let stack = Mutex::new(vec![]);
/// let recorder = Recorder::new();
/// let calls = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..2)
///         .map(|thread| {
///             let mut log = recorder.log(thread);
///             let stack = &stack;
///             scope.spawn(move || {
///                 log.call(Operation::Push(thread), |_| {
///                     stack.lock().unwrap().push(thread);
///                     Outcome::Pushed
///                 });
///                 log.call(Operation::Pop, |_| Outcome::Popped(stack.lock().unwrap().pop()));
///                 log.into_calls()
///             })
///         })
///         .collect();
///     threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
/// });
/// let order = check(&Stack::new(), &History::new(calls).unwrap()).expect("a mutex is enough");
/// assert_eq!(order.len(), 4);
/// ```
#[derive(Debug, Default)]
pub struct Recorder {
    /// The time of the next event. Each thread adds 1 at the begin and at the end of a call.
    next: CachePadded<AtomicU64>,
}

/// The calls of one thread.
#[derive(Debug)]
pub struct Log<'r, O, R> {
    /// The clock of all threads.
    recorder: &'r Recorder,
    /// The number of the thread that makes the calls.
    thread: usize,
    /// The calls that have returned, in their order.
    calls: Vec<Call<O, R>>,
}

impl Recorder {
    /// A recorder of one history.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: CachePadded::new(AtomicU64::new(0)) }
    }

    /// A log for the thread with this number.
    #[must_use]
    pub const fn log<O, R>(&self, thread: usize) -> Log<'_, O, R> {
        Log { recorder: self, thread, calls: Vec::new() }
    }

    fn moment(&self) -> u64 {
        // AcqRel: a call that has ended happened before those that begin later.
        self.next.fetch_add(1, Ordering::AcqRel)
    }
}

impl<O, R> Log<'_, O, R> {
    /// Makes a call and records its outcome. A call that panics stays in the log as one that was
    /// never seen to return. It must be the thread's last call.
    pub fn call(&mut self, operation: O, perform: impl FnOnce(&O) -> R) {
        let place = self.calls.len();
        let begin = self.recorder.moment();
        let call = Call { thread: self.thread, operation, outcome: None, begin, end: u64::MAX };
        self.calls.push(call);
        let outcome = perform(&self.calls[place].operation);
        let end = self.recorder.moment();
        let call = &mut self.calls[place];
        call.outcome = Some(outcome);
        call.end = end;
    }

    /// Reserves room for this number of calls, so that recording them does not allocate.
    pub fn reserve(&mut self, calls: usize) {
        self.calls.reserve(calls);
    }

    /// Returns the calls that were recorded.
    #[must_use]
    pub fn into_calls(self) -> Vec<Call<O, R>> {
        self.calls
    }
}
