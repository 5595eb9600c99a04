//! A program that locks by `pthread_mutex_*`, for the tests of the shim: `pthreads WHAT`.
//!
//! It prints `ok` if all calls did as the manual of the C library says.

#[cfg(target_os = "linux")]
#[path = "pthreads/linux.rs"]
mod linux;

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
    #[cfg(not(target_os = "linux"))]
    println!("not Linux");
}
