//! The promise of `Progress`, tested with real threads: one thread is stopped after each
//! *instruction* of an operation in turn, and two others must finish theirs.
//!
//! ```text
//! cargo test -p stanchion-lockfree --test progress
//!     all structures, and peers
//! cargo test -p stanchion-lockfree --test progress -- SegQueue MichaelScott
//!     those whose names contain one of these
//! STANCHION_PROGRESS=all cargo test -p stanchion-lockfree --test progress
//!     after every instruction, however many there are
//! ```
//!
//! A structure of this crate passes if it does as it states: at no instruction do the other threads
//! wait for the stopped thread, or at some they do. Of peers it is only known what they should be.
//! The table tells at which instruction a thread waited first.
//!
//! Why not a thread that sleeps at chosen points: it would be stopped only where its author thought
//! of, and a peer has no such points. Why not signals: the test cannot choose the instruction at
//! which one comes.
//!
//! # Method
//!
//! ```text
//! this process (tracer)         its child
//!   fork ───────────────────▶   first thread: the victim      two other threads, not traced
//!                               makes a structure, fills it   sleep on `go`
//!   sees it stop                raises SIGTRAP before the operation
//!   k steps, or a breakpoint    runs k instructions
//!   go ───────────────────────────────────────────────────▶   their operations
//!   waits until they are done, or stuck                       done
//!   PTRACE_CONT                 ends the operation, raises SIGTRAP
//! ```
//!
//! A thread is *stuck* if it has used 60 ms of processor time for one operation, or sleeps in one
//! for two seconds. A thread that has not run for long on a busy computer is not stuck.
//!
//! Harness: none, because a process that forks should have one thread. Linux with glibc on x86-64
//! and aarch64 only. If ptrace is forbidden, the test prints that and is skipped. On an aarch64
//! without LSE atomics a single step ends every exclusive access, so no compare-exchange ever
//! succeeds there. The number of steps shows that, and the test is skipped too.

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
    mod processors;
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
