//! Null threads: the cost of creating, starting and finishing threads that do nothing else, or
//! hardly anything.
//!
//! Anderson, Lazowska and Levy used these programs to compare five ways to manage ready threads
//! (section 3.6). Here they run over any [`Strategy`](stanchion_threadpool::Strategy). The paper
//! says of the first:
//!
//! > Initially, P threads are created; each recursively creates a thread then finishes, allowing
//! > that processor to start up one of the waiting threads. The test terminates when each processor
//! > has executed 1M/P threads.
//!
//! - [`run`] measures the time of all processors for their threads, contention included: the
//!   paper's figures 3.1, 3.2 and 3.3.
//! - [`latency`] measures the cost of one creation, and of one finish with the start that follows,
//!   for a number of runnable threads, without contention: the paper's figure 3.4.
//!
//! The paper does not say whether a thread computes before it creates the next or after. Here it
//! creates first. So there are always *waiting* threads, as the sentence above has it.
//!
//! A thread has a control block, which is the strategy's, and a stack, onto which its arguments are
//! copied when it starts (section 2). It runs on the stack of its processor. A switch to another
//! thread takes the same few instructions whatever the strategy is, and they are among the
//! [`Costs`]. Idle processors do the same as the paper's did: they look whether there is a thread,
//! and take a lock only then.
//!
//! Source: T. Anderson, E. Lazowska, H. Levy, *The performance implications of thread management
//! alternatives for shared-memory multiprocessors*, 1989.

mod latency;
mod options;
mod processor;
mod throughput;

pub use crate::crew::MAX_THREADS;
pub use latency::{Latency, Sweep, latency};
pub use options::{Costs, Options, Path, Refused, Run};
pub use throughput::{run, user_work};
