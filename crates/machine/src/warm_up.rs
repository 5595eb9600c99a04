//! Does the one-time work of a first wait beforehand.

use crate::{asymmetric, clock, fork, thread, topology};

/// Does the work that the first wait of the process would otherwise do, and gives the calling
/// thread its number.
///
/// No program needs to call it. A program calls it early if its first waits should take no longer
/// than the later ones, or if it installs a system call filter afterwards. It may be called any
/// number of times, and in each thread.
///
/// - It decides on the clock and finds its speed. Otherwise the first wait does, for 50 µs.
/// - It counts the processors that the process may use. Otherwise the first wait does, by two
///   system calls.
/// - It reads the quota of processor time, for which it opens files and allocates. No wait does so.
///   As long as the quota is not known, locks spin as without one.
/// - It registers with the kernel for [`asymmetric`] barriers. Otherwise the first thread that goes
///   to sleep does, or a release much later. That takes up to 20 ms if the process has several
///   threads, and next to nothing if it has one.
/// - It gives the calling thread its [`index`](thread::index). Otherwise its first lock does, in
///   less than 1 µs.
///
/// `cargo run --release -p stanchion-machine --example costs` prints these times for this machine.
///
/// On Linux on a 64-bit machine, the waits of this project's locks open no file and call no
/// allocator, whether or not the program has called this. There are two exceptions: `Clh` of
/// `stanchion-spin` allocates, and the policy `HolderAware` of `stanchion-competitive` does both.
/// These two, `PreemptionSafe`, `Recovering` and recorded locks state in their own documentation
/// what else their first wait does. This function does not do that work.
///
/// ```
/// stanchion_machine::warm_up();
/// ```
pub fn warm_up() {
    let now = clock::now();
    // Each conversion finds the speed if it is not known.
    let _ = now.plus_nanos(1).nanos_since(now);
    let _ = topology::usable();
    let _ = topology::quota();
    let _ = fork::generation();
    asymmetric::heavy();
    let _ = thread::index();
}
