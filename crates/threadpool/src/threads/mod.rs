//! The threads of a pool: `table.rs` says which slots have one, and `custom.rs` has the threads
//! that the program starts.

pub(crate) mod custom;
pub(crate) mod table;

pub(crate) use self::custom::{
    CustomSpawn, DefaultSpawn, ScopedThreads, ThreadBuilder, ThreadDone, ThreadHandle, ThreadSpawn,
};
pub(crate) use self::table::{Names, ThreadTable};
