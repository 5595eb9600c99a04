//! Tests what the process table says of a thread, with records and without.

use super::{Account, Watched, alone, processors, refuse_perf_events, until};
use stanchion_machine::presence::watch::Watch;
use stanchion_machine::presence::{self, Means, Presence, Refused};
use stanchion_machine::{thread, topology};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;

/// Checks a thread that blocks, runs, shares its processor, and ends.
fn a_thread_is_seen_through_its_life() {
    let cpus = processors();
    let (mine, its) = (cpus[0], cpus[cpus.len() - 1]);
    let _pinned = topology::pin(mine).unwrap();
    let other = Watched::on(its);
    until(|| presence::examine(other.index) == Presence::Blocked);
    other.spin();
    if mine != its {
        until(|| presence::examine(other.index) == Presence::Running);
    }
    let rival = Watched::on(its);
    rival.spin();
    // They take turns: each is off its processor half of the time, and could run.
    until(|| presence::examine(other.index) == Presence::Preempted);
    until(|| presence::examine(rival.index) == Presence::Preempted);
    rival.end();
    other.spins.store(false, SeqCst);
    until(|| presence::examine(other.index) == Presence::Blocked);
    let index = other.end();
    until(|| presence::examine(index) == Presence::Unknown);
    for index in [thread::INDICES - 1, thread::INDICES, usize::MAX] {
        assert_eq!(presence::examine(index), Presence::Unknown);
    }
}

#[test]
fn a_thread_is_examined_through_its_life() {
    let _account = Account::shared();
    a_thread_is_seen_through_its_life();
}

#[test]
fn a_thread_without_records_is_examined_through_its_life() {
    let _account = Account::shared();
    alone("examined::a_thread_without_records_is_examined_through_its_life", || {
        refuse_perf_events(libc::EPERM);
        a_thread_is_seen_through_its_life();
    });
}

#[test]
fn records_can_be_declined() {
    let _account = Account::shared();
    alone("examined::records_can_be_declined", || {
        let before = presence::status();
        let declined = presence::decline();
        let again = presence::decline();
        drop(declined);
        assert_eq!(presence::status(), Err(Refused::Declined));
        let me = presence::register().unwrap();
        assert_eq!((me.means(), me.refused()), (Means::CpuClock, Some(&Refused::Declined)));
        assert_eq!(Watch::new().refused(), Some(&Refused::Declined));
        a_thread_is_seen_through_its_life();
        drop((me, again));
        assert_eq!(presence::status(), before);
    });
}

/// A debugger stops one thread, which waits, and another thread examines it. (SIGSTOP would stop
/// the examining thread as well.)
#[test]
fn a_stopped_thread_has_not_blocked() {
    let _account = Account::shared();
    alone("examined::a_stopped_thread_has_not_blocked", || {
        let (sender, told) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let waits = std::thread::spawn(move || {
            let me = presence::register().unwrap();
            // SAFETY: the call takes no pointer.
            sender.send((me.index(), unsafe { libc::gettid() })).unwrap();
            ends.recv().unwrap_err();
        });
        let (index, tid) = told.recv().unwrap();
        until(|| presence::examine(index) == Presence::Blocked);
        let Some(debugger) = Debugger::stops(tid) else {
            return eprintln!("this process may not be traced here");
        };
        assert_eq!(presence::examine(index), Presence::Preempted);
        if presence::status().is_ok() {
            assert_eq!(presence::of(index), Presence::Blocked, "a record cannot tell");
        }
        drop(debugger);
        until(|| presence::examine(index) == Presence::Blocked);
        drop(end);
        waits.join().unwrap();
    });
}

/// A child that traces a thread of this process, until it is dropped.
struct Debugger {
    /// The process number of the child.
    child: i32,
    /// The pipe that keeps the child alive: it ends when no process can write to the pipe any more.
    lives: Option<std::io::PipeWriter>,
}

impl Debugger {
    /// Stops thread `tid`. Returns `None` if that is forbidden here.
    fn stops(tid: i32) -> Option<Self> {
        let (mut hears, says) = std::io::pipe().unwrap();
        let (waits, lives) = std::io::pipe().unwrap();
        const ANYBODY: libc::c_ulong = libc::c_ulong::MAX;
        // SAFETY: the call takes only numbers. It fails where no permission is needed.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, ANYBODY) };
        // SAFETY: the child does nothing but system calls.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // SAFETY: the child has its own copies of the descriptors.
            unsafe { libc::close(lives.as_raw_fd()) };
            let answer = u8::from(trace(tid));
            // SAFETY: one byte, and one to read.
            unsafe { libc::write(says.as_raw_fd(), (&raw const answer).cast(), 1) };
            let mut nothing = 0_u8;
            // SAFETY: room for one byte; returns when the parent's end is closed.
            unsafe { libc::read(waits.as_raw_fd(), (&raw mut nothing).cast(), 1) };
            // SAFETY: ends the child, which frees the thread that it traces.
            unsafe { libc::_exit(0) };
        }
        let debugger = Self { child, lives: Some(lives) };
        let mut answer = [0];
        hears.read_exact(&mut answer).unwrap();
        (answer == [1]).then_some(debugger)
    }
}

/// Stops a thread. Returns whether it could.
fn trace(tid: i32) -> bool {
    let nothing = core::ptr::null_mut::<u8>();
    // SAFETY: the requests take no memory.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, nothing, nothing) } == 0;
    // SAFETY: as above.
    let stopped =
        seized && unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, nothing, nothing) } == 0;
    // SAFETY: nothing is written.
    stopped && unsafe { libc::waitpid(tid, core::ptr::null_mut(), libc::__WALL) } == tid
}

impl Drop for Debugger {
    fn drop(&mut self) {
        drop(self.lives.take());
        // SAFETY: the child is this process's, and nothing is written.
        unsafe { libc::waitpid(self.child, core::ptr::null_mut(), 0) };
    }
}
