//! Recording what real threads do.
//!
//! A call needs two moments such that, if the end of one call is earlier than the beginning of another, the first really was over when the other
//! began. A clock of each processor's own does not promise that everywhere. So the moments are tickets: one word, drawn from by fetch-and-add, which
//! puts all of them in one order that agrees with time. A call costs two locked instructions on that word, and its record goes into a vector of the
//! thread's own.
//!
//! The tickets also order what they stand between: by Acquire and Release, a call that ended before another began happened before it. So on a
//! processor that reorders, recorded calls see at least what they must; what is checked is linearizability, not whether an unordered reader is
//! behind.

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
    next: CachePadded<AtomicU64>,
}

/// The calls of one thread.
#[derive(Debug)]
pub struct Log<'r, O, R> {
    recorder: &'r Recorder,
    thread: usize,
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
    /// Makes a call and keeps what came of it. A call that panics stays in the log as one that was never seen to return; it must be the thread's
    /// last.
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

    /// Makes room for so many calls, so that recording them allocates nothing.
    pub fn reserve(&mut self, calls: usize) {
        self.calls.reserve(calls);
    }

    /// What was recorded.
    #[must_use]
    pub fn into_calls(self) -> Vec<Call<O, R>> {
        self.calls
    }
}
