//! Torture for locks: what models cannot reach because it takes a kernel, and time.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`subject`] | any `lock_api` lock behind one small interface |
//! | [`busted`] | locks that are broken on purpose; a check that passes one of them is no check |
//! | [`locks`] | the names that the command knows |
//! | [`contest`] | threads that fight for one lock and keep the books |
//! | [`tormentor`] | a thread that stalls the others by signal, wherever they are |
//! | [`phase`] | calm, crowd, one processor |
//! | [`activations`] | user-level threads, on carriers that are stalled and that block, with books of every thread |
//! | [`barrier`] | every barrier, with deadlines that pass and members that leave |
//! | [`gang`] | gangs that are switched by signal: they allocate, lock, panic, are cancelled, never look |
//! | [`pool`] | the thread pool, under every strategy, with books of its tasks |
//! | [`random`] | seeded, so that a run can be repeated as far as the kernel lets it |
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
