//! Chapter: how to write code that can be model-checked.
//!
//! A model runs a small test body under every interleaving of its threads, and with every value
//! that the memory orderings allow a load to return. It finds a missing `Release` that no run on
//! real hardware shows. This chapter says what your code must look like for that, and what a model
//! that passes does and does not tell you. There is nothing in this module but the text.
//!
//! # Run it
//!
//! Write the test with [`stanchion_machine::model`](crate::model()). Then the same source runs in
//! two ways:
//!
//! ```text
//! cargo test                                        # a few dozen real runs
//! RUSTFLAGS="--cfg stanchion_loom" cargo test       # every interleaving
//! ```
//!
//! If your own code says `cfg(stanchion_loom)`, declare the name in `Cargo.toml`:
//!
//! ```toml
//! [lints.rust]
//! unexpected_cfgs = { level = "warn", check-cfg = ["cfg(stanchion_loom)"] }
//! ```
//!
//! Under that flag this crate installs a `#[global_allocator]` (the system's, with a book of which
//! thread of a model allocated what). If your tests install one too, the compiler reports a
//! conflict: put yours behind `#[cfg(not(stanchion_loom))]`.
//!
//! # Ask `machine` for everything that threads share
//!
//! A model sees what goes through this crate, and nothing else.
//!
//! | instead of | use |
//! | --- | --- |
//! | `std::sync::atomic` | [`stanchion_machine::atomic`](crate::atomic) |
//! | `std::cell::UnsafeCell` | [`stanchion_machine::cell`](crate::cell) |
//! | `std::sync::Arc` | [`stanchion_machine::sync::Arc`](crate::sync) |
//! | `std::thread` | [`stanchion_machine::thread`](mod@crate::thread) |
//! | `std::thread::park`, a futex | [`stanchion_machine::park`](crate::park) |
//! | `std::time::Instant` | [`stanchion_machine::clock`](crate::clock) |
//! | a loop around `spin_loop` | [`stanchion_machine::wait`](crate::wait) |
//! | `static`, if threads change it | [`global!`](crate::global) |
//! | `std::thread_local!` | [`thread_local!`](crate::thread_local) |
//!
//! A loop that waits must wait through [`wait`](crate::wait). There a look that finds nothing new
//! ends the branch. A bare loop has endlessly many interleavings, and the model fails with
//! "exceeded maximum number of branches". A loop that repeats a failed `compare_exchange` may stay
//! as it is: it fails only because another thread has succeeded.
//!
//! A `static` keeps what one execution wrote into its cells, and the next execution finds it. Two
//! models that run at the same time, as two tests of one program do, take its atomics from each
//! other. [`global!`](crate::global) makes the value anew for each execution.
//!
//! # Put data into cells
//!
//! Data that one thread writes and another reads without a lock belongs into a
//! [`cell::UnsafeCell`](crate::cell::UnsafeCell), and every access into the closure of
//! [`with`](crate::cell::UnsafeCell::with) or [`with_mut`](crate::cell::UnsafeCell::with_mut). Two
//! accesses that nothing orders, one of them a write, are reported. Keep no pointer beyond the
//! closure: an access through it is not seen. `get_mut` and `into_inner` are checked like a write.
//!
//! A lock's model needs such a cell as its data. A lock that excludes, but does not order what its
//! holders do, passes every assertion and fails at the cell.
//!
//! # Make objects by `fresh` where threads meet them
//!
//! If an atomic or a cell is made while threads run, and another thread finds it through a pointer,
//! then its creation must be ordered too. With a pointer published by `Relaxed` the other thread
//! may find memory in which the object is not yet made. There are two constructors:
//!
//! - `new` is `const`. Use it for statics, and for what is made before the threads that use it.
//! - [`Fresh::fresh`](crate::atomic::Fresh::fresh) records its creation. Use it for the nodes of a
//!   list, a queue or a stack, on the heap or in a waiter's frame. On the real machine it is `new`.
//!
//! ```
//! use core::ptr;
//! use stanchion_machine::atomic::{AtomicPtr, Fresh, Ordering::{Acquire, Relaxed, Release}};
//! use stanchion_machine::cell::UnsafeCell;
//! use stanchion_machine::{sync::Arc, thread};
//!
//! struct Node {
//!     value: UnsafeCell<u32>,
//!     next: AtomicPtr<Node>,
//! }
//!
//! struct Stack(AtomicPtr<Node>);
//!
//! impl Stack {
//!     const fn new() -> Self {
//!         Self(AtomicPtr::new(ptr::null_mut()))
//!     }
//!
//!     fn push(&self, value: u32) {
//!         let mut head = self.0.load(Relaxed);
//!         let node = Node { value: UnsafeCell::fresh(value), next: AtomicPtr::fresh(head) };
//!         let node = Box::into_raw(Box::new(node));
//!         // Release: pairs with the Acquire in `take_all`. With Relaxed the model below fails.
//!         while let Err(now) = self.0.compare_exchange(head, node, Release, Relaxed) {
//!             head = now;
//!             // SAFETY: no other thread has the node yet.
//!             unsafe { &*node }.next.store(head, Relaxed);
//!         }
//!     }
//!
//!     /// Takes all values, and returns their sum.
//!     fn take_all(&self) -> u32 {
//!         let mut node = self.0.swap(ptr::null_mut(), Acquire);
//!         let mut sum = 0;
//!         while !node.is_null() {
//!             // SAFETY: the exchange has made this thread the owner of the whole list.
//!             let taken = unsafe { Box::from_raw(node) };
//!             node = taken.next.load(Relaxed);
//!             sum += taken.value.into_inner();
//!         }
//!         sum
//!     }
//! }
//!
//! stanchion_machine::model(|| {
//!     let stack = Arc::new(Stack::new());
//!     let pusher = {
//!         let stack = stack.clone();
//!         thread::spawn(move || stack.push(1))
//!     };
//!     stack.push(2);
//!     let early = stack.take_all();
//!     pusher.join().unwrap();
//!     assert_eq!(early + stack.take_all(), 3);
//! });
//! ```
//!
//! If you write `new` for the nodes, they are checked as well. `new` cannot record when it runs,
//! because the same function makes statics. So under loom each use of an object made by `new` is
//! checked against its memory: the use must happen after the allocation, or after the maker's
//! thread entered the stack frame. With `Relaxed` in `push`, the model fails with both
//! constructors. For `new` the report names the line that made the object and the line that used
//! it:
//!
//! ```text
//! Causality violation: the object made by `new` at src/stack.rs:17:67 is used at
//! src/stack.rs:34:30, and nothing orders that use after its creation.
//! Thread 1 of the model (thread 0 runs the body) got the object's memory, and the running
//! thread has not synchronized with it since: the object was published, or found, by too weak
//! an ordering. ...
//! ```
//!
//! There are no false reports: a thread that uses memory before another thread got it races in any
//! program. (An order that comes from `std::sync` does not count, see below.) So a lock in a static
//! passes. So does one made before the threads start, or one that a thread made and handed over
//! with `Release` and `Acquire`.
//!
//! The check of `new` is weaker than that of `fresh` where the memory is older than the object.
//! It counts
//!
//! - from the allocation, if the object is made later in memory that was allocated earlier: spare
//!   capacity of a `Vec`, an arena, a node that is used again;
//! - from the entry into the frame, or from some time before, if the object lies on a stack;
//! - from the beginning of the execution, if the object lies in a static, in memory of another
//!   allocator than the global one, or on a stack to which the program itself switches.
//!
//! If the two threads synchronize between that moment and the creation, then the report is missing.
//! `fresh` is exact in all these places.
//!
//! `fresh` makes an object of the running execution. So it cannot make a static, and under loom it
//! panics outside of a model. `new` has another limit: an execution has room for 16 objects of each
//! kind made by it, or for as many as [`Model::objects`](crate::Model::objects) says.
//!
//! # Read a report
//!
//! A failed model panics in the interleaving that failed. Loom's reports name the lines of the two
//! accesses, and the line that made the object. These are lines of your code, not of this crate,
//! with one exception: loom takes an object made by `new` to be created at a line of `machine`,
//! before the model's body. `RUST_BACKTRACE=1` shows the path to the second access.
//!
//! # Keep a model small
//!
//! The number of executions grows exponentially with the number of operations.
//!
//! - Two threads, one or two operations each, find most errors. Explore those without bound.
//! - With three threads, or longer ones, set [`Model::preemptions`](crate::Model::preemptions) to 3
//!   or 2.
//! - Shrink sizes by [`stanchion_machine::sized`](crate::sized()): a batch of 2 has the same
//!   branches as one of 256.
//! - Explore a part that has models of its own [`apart`](crate::apart()).
//! - Time does not pass. Whether a deadline passes is a [`choice`](crate::choice()), explored both
//!   ways.
//! - If a model reaches a limit of [`Model`](crate::Model), it fails. Raise the limit or shrink the
//!   model.
//!
//! Break the code once (weaken an ordering, leave out a check) and see the model fail. A model that
//! cannot fail says nothing.
//!
//! # What a model does not see
//!
//! - Plain memory outside of cells. A data race on a field of another type is not reported.
//! - The end of memory. An access to a freed node is reported only if the node's atomics were made
//!   by `fresh`, because their end counts as a write.
//! - `std::sync` and other crates' locks: what they order is not ordered for the model, and a
//!   thread that waits in one stops the whole model. Do not use them between a model's threads.
//! - Load buffering: loom never lets a load return a value that is stored later in every
//!   interleaving.
//! - More threads, operations or preemptions than the model has.
