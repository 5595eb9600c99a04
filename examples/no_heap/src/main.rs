//! Spin locks where there is neither `std` nor an allocator, as in a kernel or a microcontroller.
//!
//! It does not build if anything that it uses asks for an allocator: "no global memory allocator
//! found but one is required". Here the C library only starts the program and copies memory.
//!
//! ```text
//! cargo run --manifest-path examples/no_heap/Cargo.toml
//! ```
#![no_std]
#![no_main]

use stanchion::machine::asymmetric;
use stanchion::spin::{AndersonMutex, McsMutex, TestAndSetMutex, TicketMutex};

#[link(name = "c")]
unsafe extern "C" {
    safe fn abort() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    abort()
}

static SET: TestAndSetMutex<u32> = TestAndSetMutex::new(0);
static TICKET: TicketMutex<u32> = TicketMutex::new(0);
static ANDERSON: AndersonMutex<u32> = AndersonMutex::new(0);
static MCS: McsMutex<u32> = McsMutex::new(0);

// SAFETY: no other `main` is linked.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    for _ in 0..10 {
        *SET.lock() += 1;
        *TICKET.lock() += 1;
        *ANDERSON.lock() += 1;
        *MCS.lock() += 1;
        asymmetric::light();
    }
    asymmetric::heavy();
    let all = *SET.lock() + *TICKET.lock() + *ANDERSON.lock() + *MCS.lock();
    i32::from(all != 40 || TICKET.try_lock().is_none())
}
