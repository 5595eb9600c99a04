//! A program that makes it hard for the shim, for its tests: `hostile WHAT`.
//!
//! It ends with 0 if all calls did as the manual says, and prints `ok` if it can.

#[cfg(target_os = "linux")]
mod asleep;
#[cfg(target_os = "linux")]
#[path = "hostile/filter.rs"]
mod filter;
#[cfg(target_os = "linux")]
#[path = "hostile/linux.rs"]
mod linux;
#[cfg(target_os = "linux")]
#[path = "asleep/others.rs"]
mod others;

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
    #[cfg(not(target_os = "linux"))]
    println!("not Linux");
}
