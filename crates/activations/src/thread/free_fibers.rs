//! The fibers of a runtime that no worker uses, and the stacks that new ones are made on.

use stanchion_competitive::Mutex;

use super::fiber::{Fiber, RunItems};
use super::handle::Thread;
use super::header::ThreadFiber;
use super::stacks::{StackError, Stacks};

/// Free fibers kept here, beside those that workers keep. The stacks of others are given back.
const MOST: usize = 256;

/// Returns a fiber that never runs, for a model.
#[cfg(stanchion_loom)]
pub fn unused_fiber() -> ThreadFiber {
    let size = super::stacks::Size::of(0).expect("the smallest stack");
    let stack = Stacks::new(size).and_then(|stacks| stacks.take());
    Fiber::new(stack.expect("a model has few stacks"), |_, _, _| ())
}

/// The free fibers of a runtime.
pub(crate) struct FreeFibers {
    pub(crate) stacks: Stacks,
    /// The free ones, last in, first out. Changed by the workers, and emptied at the end.
    free: Mutex<Vec<ThreadFiber>>,
}

impl FreeFibers {
    pub(crate) fn new(stacks: Stacks) -> Self {
        Self { stacks, free: Mutex::new(Vec::new()) }
    }

    /// Takes a free fiber, or makes one on a new stack.
    pub(crate) fn take(&self, run: RunItems<Thread>) -> Result<ThreadFiber, StackError> {
        let free = self.free.lock().pop();
        free.map_or_else(|| self.stacks.take().map(|stack| Fiber::new(stack, run)), Ok)
    }

    /// Keeps a free fiber, or ends it if there are enough.
    pub(crate) fn keep(&self, fiber: ThreadFiber) {
        let mut free = self.free.lock();
        if free.len() < MOST {
            free.push(fiber);
        } else {
            drop(free);
            fiber.quit();
        }
    }

    /// Ends all free fibers.
    pub(crate) fn quit_all(&self) {
        let free = core::mem::take(&mut *self.free.lock());
        free.into_iter().for_each(Fiber::quit);
    }
}

impl Drop for FreeFibers {
    /// Ends the fibers of a runtime that was dropped by one of its own threads: no thread has
    /// joined its workers.
    fn drop(&mut self) {
        self.quit_all();
    }
}
