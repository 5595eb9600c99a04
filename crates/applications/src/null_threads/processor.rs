//! A processor: it creates threads, starts them, and looks for the next when one has finished.
//!
//! # Invariants
//!
//! 1. A stack is with one processor or in the strategy. Its memory is freed when no thread uses a
//!    strategy any more.

use super::options::{Costs, Path};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::wait::{WaitPolicy, retry_until};
use stanchion_threadpool::{Link, Stack, Strategy, Task, WorkerSlot};

/// Words of a thread's control block that its creator writes, and its processor copies to the
/// stack: where it begins, and three arguments.
const FRAME: usize = 4;

/// A stack, as far as null threads use it.
#[repr(C, align(128))]
struct Memory {
    /// The link of the strategy's list of stacks.
    link: Link,
    /// The words that a thread's arguments are copied to.
    frame: stanchion_machine::cell::UnsafeCell<[usize; FRAME]>,
}

/// The stacks that a processor has made.
#[derive(Debug, Default)]
pub(super) struct Stacks(Vec<NonNull<Memory>>);

// SAFETY: it owns them; no reference to one outlives a call.
unsafe impl Send for Stacks {}

impl Stacks {
    fn make(&mut self) -> Stack {
        let frame = stanchion_machine::cell::UnsafeCell::new([0; FRAME]);
        let memory = NonNull::from(Box::leak(Box::new(Memory { link: Link::new(), frame })));
        self.0.push(memory);
        // SAFETY: the link is the first field, and alive as long as the strategy's last user
        // (Invariant 1).
        unsafe { Stack::new(memory.cast()) }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        for memory in self.0.drain(..) {
            // SAFETY: made by `Box::leak`, and freed here only. No thread uses it any more
            // (Invariant 1).
            drop(unsafe { Box::from_raw(memory.as_ptr()) });
        }
    }
}

/// Words that code paths of one processor write and no other reads: on lines of their own.
#[repr(align(128))]
struct Own([usize; Path::MOST_WRITES]);

/// See the head of this file.
pub(super) struct Processor<'a, S> {
    /// The strategy under test.
    strategy: &'a S,
    /// The processor's place in the strategy.
    place: WorkerSlot,
    /// The work outside the strategy.
    costs: Costs,
    /// The words that its code paths write.
    own: Box<Own>,
    /// The block of the thread that has just finished.
    finished: Option<Task>,
    /// The stack that it has in hand.
    stack: Option<Stack>,
    /// The stacks that it has made.
    made: Stacks,
    /// The number of times that it found no thread.
    idled: u64,
}

impl<'a, S: Strategy> Processor<'a, S> {
    /// The processor at `place`, with a stack for the strategy to begin with.
    pub(super) fn new(strategy: &'a S, place: WorkerSlot, costs: Costs) -> Self {
        let mut made = Stacks::default();
        strategy.give_stack(Some(&place), made.make());
        let own = Box::new(Own([0; Path::MOST_WRITES]));
        Self { strategy, place, costs, own, finished: None, stack: None, made, idled: 0 }
    }

    /// Creates a thread.
    pub(super) fn create(&self, argument: usize) {
        self.compute(self.costs.create);
        let _nobody_sleeps = self.strategy.create(Some(&self.place), |task| {
            let words = frame(task);
            // SAFETY: the block is the callee's to fill, and has more words than these; so below.
            stanchion_machine::write(unsafe {
                words.cast::<[MaybeUninit<usize>; FRAME]>().as_ref()
            });
            // SAFETY: as above.
            unsafe { words.write([argument; FRAME]) };
        });
    }

    /// The next thread, started; the last one has finished. `None` if there is none.
    pub(super) fn next(&mut self) -> Option<Started> {
        let task = self.strategy.next(&self.place, self.finished.take(), &mut self.stack)?;
        self.compute(self.costs.start);
        let stack = self.stack.get_or_insert_with(|| self.made.make());
        // SAFETY: the task is ours, and was filled by `create`.
        let words = unsafe { frame(&task).as_ref() };
        stanchion_machine::read(words);
        // SAFETY: the stack is ours (Invariant 1), and its link the first field.
        let memory = unsafe { stack.link().cast::<Memory>().as_ref() };
        memory.frame.with_mut(|to| {
            // SAFETY: as above.
            unsafe { *to = *words };
        });
        let argument = words[FRAME - 1];
        Some(Started { task, argument })
    }

    /// As [`next`](Self::next), waiting for a thread; `None` when `over` is set while there is
    /// none.
    pub(super) fn wait<W: WaitPolicy>(&mut self, over: &AtomicBool) -> Option<Started> {
        loop {
            if let Some(started) = self.next() {
                return Some(started);
            }
            self.idled += 1;
            self.strategy.idle(&self.place);
            let mut policy = W::start();
            let is_ready = retry_until(
                || {
                    stanchion_machine::work(self.costs.look_ns);
                    if self.strategy.is_ready(&self.place) {
                        return Some(true);
                    }
                    // Relaxed: the thread that joins sees everything that a panic left behind.
                    over.load(Ordering::Relaxed).then_some(false)
                },
                &mut policy,
            );
            if !is_ready {
                return None;
            }
        }
    }

    /// The thread has finished; its block goes back with the next look for another.
    pub(super) fn finish(&mut self, started: Started) {
        self.compute(self.costs.finish);
        self.finished = Some(started.task);
    }

    /// Gives back the stack and block that it has in hand, and leaves to the others the threads
    /// that only it would find.
    pub(super) fn leave(mut self) -> (Stacks, u64) {
        if let Some(finished) = self.finished.take() {
            self.strategy.release(Some(&self.place), finished);
        }
        if let Some(stack) = self.stack.take() {
            self.strategy.give_stack(Some(&self.place), stack);
        }
        self.strategy.leave(&self.place);
        (self.made, self.idled)
    }

    fn compute(&self, path: Path) {
        stanchion_machine::work(path.nanos);
        stanchion_machine::write(&self.own.0[..path.writes]);
    }
}

/// Returns the words of a thread that its creator writes.
fn frame(task: &Task) -> NonNull<[usize; FRAME]> {
    task.words().cast()
}

/// A thread that runs.
#[derive(Debug)]
pub(super) struct Started {
    /// The control block of the thread.
    task: Task,
    /// The argument that it was created with.
    pub(super) argument: usize,
}
