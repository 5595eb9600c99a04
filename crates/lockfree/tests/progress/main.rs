//! The promise of `Progress`, tested with real threads: one thread is stopped after each
//! *instruction* of an operation in turn, and two others must finish theirs.
//!
//! ```text
//! cargo test -p stanchion-lockfree --test progress                         all structures, and peers
//! cargo test -p stanchion-lockfree --test progress -- SegQueue MichaelScott     those whose names contain one of these
//! STANCHION_PROGRESS=all cargo test -p stanchion-lockfree --test progress  after every instruction, however many there are
//! ```
//!
//! A structure of ours passes if it is what it says: at no instruction do the others wait for the
//! stopped thread, or at some they do. Of peers it is only known what they should be. The table
//! says at which instruction somebody waited first.
//!
//! Why not a thread that sleeps at chosen places: it would be stopped where its author thought of,
//! and a peer has no such places. Why not signals: they come between instructions that one does not
//! choose.
//!
//! # How
//!
//! ```text
//! this process (tracer)                       its child
//!   fork ─────────────────────────────────▶   first thread: the victim        two others, which nobody traces
//!                                             makes a structure, fills it     sleep on `go`
//!   sees it stop                              raises SIGTRAP before the operation
//!   k steps, or a breakpoint                  runs k instructions
//!   go ───────────────────────────────────────────────────────────────────▶   their operations
//!   waits until they are done, or stuck                                       done
//!   PTRACE_CONT                               ends the operation, raises SIGTRAP
//! ```
//!
//! A thread is *stuck* if it has used 60 ms of processor time for one operation, or sleeps in one
//! for two seconds. That it has not run for long on a busy computer says nothing.
//!
//! Harness: none, because a process that forks should have one thread. Linux with glibc on x86-64
//! and aarch64 only; where ptrace is forbidden the test says so and is skipped. On an aarch64
//! without LSE atomics a single step ends every exclusive access, so no compare-exchange ever
//! succeeds there: this is seen by the number of steps, and skipped too.

/// Items for systems where the test can run.
macro_rules! traced {
    ($($item:item)+) => {$(
        #[cfg(all(
            target_os = "linux",
            target_env = "gnu",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ))]
        $item
    )+};
}

traced! {
    mod allocator;
    mod breakpoint;
    mod child;
    mod peers;
    mod run;
    #[path = "../common/structures.rs"]
    mod structures;
    mod tracer;

    use stanchion_lockfree as lockfree;

    #[global_allocator]
    static ALLOCATOR: allocator::Bump = allocator::Bump;

    fn main() -> std::process::ExitCode {
        run::main()
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
fn main() {
    println!("progress: skipped, it needs ptrace of Linux, glibc, and x86-64 or aarch64");
}
