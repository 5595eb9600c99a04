//! Torture for locks: tests of properties that models cannot reach, because the properties need a
//! kernel and time.
//!
//! - [`subject`]: any `lock_api` lock behind one small interface.
//! - [`busted`]: locks that are broken on purpose. A check that accepts one of them is no check.
//! - [`locks`]: the names that the command knows.
//! - [`contest`]: threads that contend for one lock, and the counts by which it is checked.
//! - [`tormentor`]: stalls other threads by signal, at any point.
//! - [`phase`]: calm, crowd, one processor.
//! - [`activations`]: user-level threads, on workers that are stalled and that block.
//! - [`barrier`]: all barriers, with deadlines that pass and members that leave.
//! - [`gang`]: gangs that are switched by signal. They allocate, lock, panic and are cancelled.
//! - [`pool`]: the thread pool, with every strategy and a count of its tasks.
//! - [`random`]: seeded, so that a run can be repeated as far as the kernel permits.
//!
//! The idea is that of Linux's `locktorture`, which also ships a broken lock.

#[cfg(feature = "command")]
pub mod activations;
#[cfg(feature = "command")]
pub mod barrier;
pub mod busted;
#[cfg(feature = "command")]
pub mod contest;
#[cfg(feature = "command")]
pub mod gang;
#[cfg(feature = "command")]
pub mod locks;
#[cfg(feature = "command")]
pub mod phase;
#[cfg(feature = "command")]
pub mod pool;
pub mod random;
#[cfg(feature = "command")]
pub mod subject;
#[cfg(feature = "command")]
pub mod tormentor;
#[cfg(feature = "command")]
mod victims;
