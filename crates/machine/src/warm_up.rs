//! What a first wait would do, beforehand.

use crate::{asymmetric, clock, fork, thread, topology};

/// Does what a first wait of the process would otherwise do, and numbers the calling thread.
///
/// Nothing needs it. A program calls it early if its first waits are to take no longer than the
/// later ones, or if it installs a system call filter afterwards. It may be called any number of
/// times, and in each thread.
///
/// | what it does | without it | files, memory |
/// | --- | --- | --- |
/// | decides on the clock and finds its speed | the first wait, 50 µs | none |
/// | counts the processors that the process may use | the first wait, two system calls | none |
/// | reads the quota of processor time | it stays unknown, and locks spin as without one | opens files, allocates |
/// | registers with the kernel for [`asymmetric`] barriers | the first thread that goes to sleep, up to 20 ms if the process has several threads, next to nothing if it has one | none |
/// | gives the calling thread its [`index`](thread::index) | the first lock of the thread, 100 ns | none |
///
/// On Linux the locks of this project need no file and no allocator for their waits, whether or not
/// it was called, with two exceptions: `Clh` of `stanchion-spin` allocates, and the policy
/// `HolderAware` of `stanchion-competitive` does both. These, `PreemptionSafe`, `Recovering` and
/// recorded locks say in their own documentation what else their first wait does. That is not done
/// here.
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
