//! `Switching::Signal` and system calls that a signal ends, and the switching after the program has
//! taken the signal for itself.
//!
//! Each test has a process of its own, which is this program again: signals are the whole
//! process's.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use stanchion_alone::alone;
use stanchion_gang::{GangExecutor, Member, Switching};

/// Builds an executor of one processor, for which gangs take turns.
fn executor() -> GangExecutor {
    let quantum = Duration::from_micros(200);
    let builder = GangExecutor::builder().processors(1).quantum(quantum);
    let executor = builder.switching(Switching::Signal).build().unwrap();
    assert_eq!(executor.switching_refused(), None);
    executor
}

/// Runs `body` as a member, while another gang, which never checks, takes turns with it.
fn beside_a_hog<R: Send + 'static>(
    executor: &GangExecutor,
    body: impl Fn(&mut Member) -> R + Send + Sync + 'static,
) -> R {
    let (begun, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let hog = {
        let (begun, over) = (Arc::clone(&begun), Arc::clone(&over));
        executor.spawn(1, move |_: &mut Member| {
            begun.store(true, SeqCst);
            while !over.load(SeqCst) {
                std::hint::spin_loop();
            }
            Ok(())
        })
    };
    // A hog that does not run yet does not keep its processor beyond its turn.
    while !begun.load(SeqCst) {
        std::thread::yield_now();
    }
    let done = executor.spawn(1, move |member: &mut Member| Ok(body(member)));
    let done = done.unwrap().join().unwrap().pop().unwrap();
    over.store(true, SeqCst);
    hog.unwrap().join().unwrap();
    done
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

/// A call that waits for `time` and for nothing else, and returns 0 or its error.
type Call = fn(time: Duration) -> i32;

fn ended(result: impl Into<i64>) -> i32 {
    if result.into() < 0 { errno() } else { 0 }
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() }
}

fn silent_socket() -> (UnixStream, UnixStream) {
    UnixStream::pair().unwrap()
}

const READ: Call = |time| {
    let (mut silent, _other) = silent_socket();
    silent.set_read_timeout(Some(time)).unwrap();
    let error = silent.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind() == ErrorKind::Interrupted, error.raw_os_error() == Some(libc::EINTR));
    error.raw_os_error().unwrap()
};

const POLL: Call = |time| {
    let (silent, _other) = silent_socket();
    let mut poll = libc::pollfd { fd: silent.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, which is alive.
    ended(unsafe { libc::poll(&raw mut poll, 1, time.as_millis() as i32) })
};

const SELECT: Call = |time| {
    let mut time =
        libc::timeval { tv_sec: time.as_secs() as i64, tv_usec: time.subsec_micros().into() };
    let none = ptr::null_mut();
    // SAFETY: no sets, and a time that is alive.
    ended(unsafe { libc::select(0, none, none, none, &raw mut time) })
};

const EPOLL_WAIT: Call = |time| {
    // SAFETY: makes a descriptor.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    assert!(epoll >= 0);
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event.
    let waited = unsafe { libc::epoll_wait(epoll, &raw mut event, 1, time.as_millis() as i32) };
    let ended = ended(waited);
    // SAFETY: made above.
    unsafe { libc::close(epoll) };
    ended
};

const NANOSLEEP: Call = |time| {
    let time = timespec(time);
    // SAFETY: alive, and no remainder is asked for.
    ended(unsafe { libc::nanosleep(&raw const time, ptr::null_mut()) })
};

const CLOCK_NANOSLEEP: Call = |time| {
    let time = timespec(time);
    // SAFETY: alive, and no remainder is asked for.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const time, ptr::null_mut()) }
};

const SIGTIMEDWAIT: Call = |time| {
    let time = timespec(time);
    // SAFETY: all zeroes is a valid set: of no signals.
    let set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: both are alive, and nothing is asked for.
    ended(unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const time) })
};

const CALLS: [(&str, Call, i32); 7] = [
    ("read with a timeout", READ, libc::EAGAIN),
    ("poll", POLL, 0),
    ("select", SELECT, 0),
    ("epoll_wait", EPOLL_WAIT, 0),
    ("nanosleep", NANOSLEEP, 0),
    ("clock_nanosleep", CLOCK_NANOSLEEP, 0),
    ("sigtimedwait", SIGTIMEDWAIT, libc::EAGAIN),
];

/// The calls end early, as documented. Else they would wait for minutes.
#[test]
fn calls_with_a_timeout_end_early_when_a_turn_does() {
    alone("calls_with_a_timeout_end_early_when_a_turn_does", || {
        let executor = executor();
        for (name, call, _) in CALLS {
            let ended = beside_a_hog(&executor, move |_| call(Duration::from_secs(300)));
            assert_eq!(ended, libc::EINTR, "{name}");
        }
        executor.shutdown();
    });
}

#[test]
fn calls_with_a_timeout_reach_it_inside_of_blocking() {
    alone("calls_with_a_timeout_reach_it_inside_of_blocking", || {
        let executor = executor();
        for (name, call, at_the_end) in CALLS {
            let ends = beside_a_hog(&executor, move |member| {
                // Each of them might begin while a signal is under way.
                (0..50)
                    .map(|_| {
                        let ended = member.blocking(|| call(Duration::from_millis(1)));
                        // Computes until its turn is over.
                        let _ = member.checkpoint();
                        ended
                    })
                    .collect::<Vec<_>>()
            });
            assert_eq!(ends, [at_the_end; 50], "{name}");
        }
        executor.shutdown();
    });
}

/// These are the calls that std repeats of itself.
#[test]
fn sleeps_and_waits_of_std_last_as_long_as_they_are_to() {
    alone("sleeps_and_waits_of_std_last_as_long_as_they_are_to", || {
        let executor = executor();
        let time = Duration::from_millis(30);
        let (slept, waited) = beside_a_hog(&executor, move |_| {
            let begin = std::time::Instant::now();
            std::thread::sleep(time);
            let slept = begin.elapsed();
            let (_send, receive) = std::sync::mpsc::channel::<()>();
            let begin = std::time::Instant::now();
            receive.recv_timeout(time).unwrap_err();
            (slept, begin.elapsed())
        });
        assert!(slept >= time && waited >= time, "{slept:?}, {waited:?}");
        executor.shutdown();
    });
}

/// Returns the signal that the executor's probe has chosen: the only one of its kind with a
/// handler.
fn chosen() -> i32 {
    let has_handler = |&signal: &i32| {
        // SAFETY: all zeroes is a valid `sigaction`.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: only asks; `action` is writable.
        let asked = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
        assert_eq!(asked, 0);
        action.sa_sigaction != libc::SIG_DFL
    };
    let chosen: Vec<i32> = (libc::SIGRTMIN()..=libc::SIGRTMAX()).filter(has_handler).collect();
    assert_eq!(chosen.len(), 1, "{chosen:?}");
    chosen[0]
}

static THEIRS: AtomicU32 = AtomicU32::new(0);

extern "C" fn theirs(_signal: libc::c_int) {
    THEIRS.fetch_add(1, SeqCst);
}

/// Lets a gang make progress beside one that never checks, until a refused interruption has been
/// counted.
fn is_reported(handler: libc::sighandler_t) {
    let executor = executor();
    let signal = chosen();
    // SAFETY: another handler for a signal.
    unsafe { libc::signal(signal, handler) };
    let why = executor.switching_refused().unwrap().to_string();
    assert!(why.contains(&format!("signal {signal}")), "{why}");
    assert_eq!(executor.switching(), Switching::Cooperative);
    let counted = executor.clone();
    beside_a_hog(&executor, move |member| {
        while counted.metrics().interruptions_refused == 0 {
            member.checkpoint().unwrap();
        }
    });
    let metrics = executor.metrics();
    assert!(metrics.overstays > 0 && metrics.to_string().contains("refused"), "{metrics}");
    assert_eq!(THEIRS.load(SeqCst), 0, "the program gets none of our signals");
    // Another signal is chosen: members that never check are taken off again.
    assert_eq!(Switching::Signal.probe(), Ok(()));
    assert_eq!((executor.switching(), executor.switching_refused()), (Switching::Signal, None));
    let ended = beside_a_hog(&executor, |_| NANOSLEEP(Duration::from_secs(300)));
    assert_eq!(ended, libc::EINTR);
    executor.shutdown();
}

#[test]
fn a_handler_that_the_program_installs_later_is_reported() {
    alone("a_handler_that_the_program_installs_later_is_reported", || {
        is_reported(theirs as *const () as libc::sighandler_t);
    });
}

#[test]
fn a_signal_that_the_program_ignores_later_is_reported() {
    alone("a_signal_that_the_program_ignores_later_is_reported", || is_reported(libc::SIG_IGN));
}

/// One of our signals would then end the process.
#[test]
fn a_signal_that_the_program_resets_later_is_reported() {
    alone("a_signal_that_the_program_resets_later_is_reported", || is_reported(libc::SIG_DFL));
}
