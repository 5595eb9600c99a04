//! Tests that may run beside each other, in one program: linking each by itself takes longer.

mod blocking;
mod mutex;
mod rw_lock;

use stanchion_simulator::Arena;

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;
