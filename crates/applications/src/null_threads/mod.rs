//! Null threads: what it costs to create, start and finish threads that do nothing else, or hardly
//! anything.
//!
//! The programs by which Anderson, Lazowska and Levy compared five ways to manage ready threads
//! (section 3.6), over any [`Strategy`](stanchion_threadpool::Strategy). The paper says of the
//! first:
//!
//! > Initially, P threads are created; each recursively creates a thread then finishes, allowing
//! that processor to start up one of the waiting threads. The > test terminates when each processor
//! has executed 1M/P threads.
//!
//! | program | what is measured | the paper's |
//! | --- | --- | --- |
//! | [`run`] | how long all processors take for their threads, contention included | figures 3.1, 3.2, 3.3 |
//! | [`latency`] | what one creation, and one finish with the start that follows, costs for a number of runnable threads, without contention | figure 3.4 |
//!
//! The paper does not say whether a thread computes before it creates the next or after. Here it
//! creates first: so there are always *waiting* threads, as the sentence above has it.
//!
//! A thread has a control block, which is the strategy's, and a stack, onto which its arguments are
//! copied when it starts (section 2). It runs on the stack of its processor: to switch to another
//! takes the same few instructions whatever the strategy is, and they are among the [`Costs`]. Idle
//! processors do what the paper's did: they look whether there is something, and take a lock only
//! then.
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
