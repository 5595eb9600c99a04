//! A program that takes pthread mutexes in different orders, for tests of `record --orders`:
//! `orders WHAT`.
//!
//! Its threads run one after the other, so that none of them ever waits for a lock. It prints `ok`
//! at its end. `orders cost N` prints what taking and releasing a mutex costs.

#[cfg(target_os = "linux")]
#[path = "orders/linux.rs"]
mod linux;

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
    #[cfg(not(target_os = "linux"))]
    println!("not Linux");
}
