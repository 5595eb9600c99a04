//! Tests with children that go on with mutexes and condition variables of threads of their parent.
//!
//! Most of the forks come while another thread of the parent is within a condition variable: in a
//! broadcast to many waiters, or in a wait that times out. The child has no such thread.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libc::{CLOCK_REALTIME, ETIMEDOUT};

use super::objects::{Cond, Mutex};
use super::{after, fork};

/// The number of children.
const CHILDREN: usize = 200;
/// The time after which a child that has not ended counts as hanging. A child needs some
/// milliseconds.
const GENEROUS: Duration = Duration::from_secs(40);

/// The mutex that the parent holds at every other fork. Those children hold it too.
static HELD: Mutex = Mutex::new();
/// The condition variables of parent and children.
static CONDITIONS: [Cond; 3] = [const { Cond::new() }; 3];
/// The number of the last turn that the second thread of a child has begun. That thread writes it
/// under the mutex.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// The steps of a child. It stores the number of its step where its parent can read it.
const STEPS: [&str; 8] = [
    "its start",
    "pthread_mutex_unlock of the mutex that was held over the fork",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "pthread_cond_timedwait",
    "pthread_cond_wait for a signal of another thread of the child",
    "pthread_cond_destroy",
    "its end",
];

pub(super) fn conditions() {
    let step = shared_word();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..9 {
            let (cond, done) = (&CONDITIONS[thread % 3], &done);
            scope.spawn(move || wait_again_and_again(cond, thread, done));
        }
        for cond in &CONDITIONS {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    cond.broadcast();
                    cond.signal();
                }
                // The last waiters may have come since.
                while waiting() > 0 {
                    CONDITIONS.iter().for_each(Cond::broadcast);
                    std::thread::yield_now();
                }
            });
        }
        let hung = (0..CHILDREN).find_map(|number| {
            step.store(0, Ordering::Relaxed);
            let held = number % 2 == 0;
            if held {
                assert_eq!(HELD.lock(), 0);
            }
            let way = if number % 4 < 2 { super::fork } else { bare_fork };
            let child = way(&|| child(step, held, number % 4 < 2));
            if held {
                assert_eq!(HELD.unlock(), 0);
            }
            let ended = end_of(child);
            let place = STEPS[step.load(Ordering::Relaxed)];
            (ended != Some(0)).then_some((number, place, ended))
        });
        done.store(true, Ordering::Relaxed);
        if let Some((number, place, ended)) = hung {
            match ended {
                Some(status) => eprintln!("child {number} failed in {place}: status {status:#x}"),
                None => eprintln!("child {number} hangs in {place}"),
            }
            // SAFETY: ends the process with all of its threads.
            unsafe { libc::_exit(1) };
        }
    });
}

/// The number of threads of the parent that wait, are about to, or are on their way back.
static WAITING: AtomicUsize = AtomicUsize::new(0);

fn waiting() -> usize {
    WAITING.load(Ordering::Relaxed)
}

/// Waits on `cond` until `done`. Some threads time out.
fn wait_again_and_again(cond: &Cond, thread: usize, done: &AtomicBool) {
    WAITING.fetch_add(1, Ordering::Relaxed);
    let own = Mutex::new();
    // Some threads wait with the mutex that the parent holds at forks, some with one of their own.
    let mutex = if thread.is_multiple_of(2) { &HELD } else { &own };
    while !done.load(Ordering::Relaxed) {
        mutex.with(|| {
            if thread < 3 {
                let soon = after(CLOCK_REALTIME, Duration::from_micros(40));
                let waited = cond.wait_until(mutex, soon);
                assert!(waited == 0 || waited == ETIMEDOUT, "{waited}");
            } else {
                assert_eq!(cond.wait(mutex), 0);
            }
        });
    }
    WAITING.fetch_sub(1, Ordering::Relaxed);
}

/// Runs the steps of a child. If `held`, it holds the mutex that its parent held. If `whole`, the C
/// library has prepared itself for a child, which may then start threads.
fn child(step: &AtomicUsize, held: bool, whole: bool) {
    let own = Mutex::new();
    let mutex = if held { &HELD } else { &own };
    if held {
        step.store(1, Ordering::Relaxed);
        assert_eq!(HELD.unlock(), 0);
    }
    step.store(2, Ordering::Relaxed);
    CONDITIONS.iter().for_each(Cond::signal);
    step.store(3, Ordering::Relaxed);
    CONDITIONS.iter().for_each(Cond::broadcast);
    step.store(4, Ordering::Relaxed);
    for cond in &CONDITIONS {
        let soon = after(CLOCK_REALTIME, Duration::from_micros(100));
        mutex.with(|| while cond.wait_until(mutex, soon) != ETIMEDOUT {});
    }
    if whole {
        wake_each_other(step, mutex);
    }
    step.store(6, Ordering::Relaxed);
    CONDITIONS.iter().for_each(Cond::destroy);
    step.store(7, Ordering::Relaxed);
}

/// Forks without the handlers of `pthread_atfork`. The child may only do what a signal handler may
/// do, and use locks.
fn bare_fork(body: &dyn Fn()) -> libc::pid_t {
    // As long as the kernel reads them.
    let (signal, none) = (libc::SIGCHLD as usize, 0_usize);
    // SAFETY: as `fork`, without a stack of its own.
    let child = unsafe { libc::syscall(libc::SYS_clone, signal, none, none, none, none) };
    if child == 0 {
        super::end_after(body);
    }
    libc::pid_t::try_from(child).expect("the number of a process")
}

/// Starts a second thread in the child. It wakes the first one, once by each condition variable.
fn wake_each_other(step: &AtomicUsize, mutex: &Mutex) {
    step.store(5, Ordering::Relaxed);
    STARTED.store(0, Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (turn, cond) in (1..).zip(&CONDITIONS) {
                mutex.with(|| STARTED.store(turn, Ordering::Relaxed));
                cond.signal();
            }
        });
        for (turn, cond) in (1..).zip(&CONDITIONS) {
            mutex.with(|| {
                while STARTED.load(Ordering::Relaxed) < turn {
                    assert_eq!(cond.wait(mutex), 0);
                }
            });
        }
    });
}

/// The number of threads that wait for the mutexes.
const WAITERS: usize = 24;
/// The time after which a replaced mutex is handed to the thread that has slept on it longest.
const PATIENCE: Duration = Duration::from_millis(12);

/// Forks while threads hold mutexes and sleep on them. In the child a mutex that another thread
/// held is held. The child can use all others, also those on which threads of its parent slept.
pub(super) fn mutexes() {
    let held: Vec<Mutex> = (0..WAITERS).map(|_| Mutex::new()).collect();
    let forked: Vec<Mutex> = (0..WAITERS).map(|_| Mutex::new()).collect();
    let free: Vec<Mutex> = (0..WAITERS).map(|_| Mutex::new()).collect();
    let holding = AtomicBool::new(false);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            held.iter().for_each(|mutex| assert_eq!(mutex.lock(), 0));
            holding.store(true, Ordering::Release);
            while !done.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            held.iter().for_each(|mutex| assert_eq!(mutex.unlock(), 0));
        });
        while !holding.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        for mutex in &forked {
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Acquire) {
                    mutex.with(|| ());
                    std::thread::yield_now();
                }
            });
        }
        for mutex in &held[1..] {
            scope.spawn(|| mutex.with(|| ()));
        }
        for number in 0..12 {
            forked.iter().for_each(|mutex| assert_eq!(mutex.lock(), 0));
            std::thread::sleep(PATIENCE);
            let child = fork(&|| {
                for mutex in &held {
                    assert_eq!(mutex.try_lock(), libc::EBUSY);
                }
                let soon = after(CLOCK_REALTIME, Duration::from_millis(1));
                assert_eq!(held[0].lock_until(soon), ETIMEDOUT);
                forked.iter().for_each(|mutex| assert_eq!(mutex.unlock(), 0));
                // Threads of the child meet at each mutex.
                let sum = AtomicUsize::new(0);
                super::on_threads(3, || {
                    // No thread of the child counts as the holder.
                    let soon = after(CLOCK_REALTIME, Duration::from_micros(50));
                    assert!(held.iter().all(|mutex| mutex.lock_until(soon) == ETIMEDOUT));
                    for mutex in forked.iter().chain(&free).cycle().take(10 * WAITERS) {
                        mutex.with(|| sum.fetch_add(1, Ordering::Relaxed));
                    }
                });
                assert_eq!(sum.load(Ordering::Relaxed), 30 * WAITERS);
            });
            forked.iter().for_each(|mutex| assert_eq!(mutex.unlock(), 0));
            let ended = end_of(child);
            if ended != Some(0) {
                eprintln!("child {number} hangs or fails: {ended:?}");
                // SAFETY: ends the process with all of its threads.
                unsafe { libc::_exit(1) };
            }
        }
        done.store(true, Ordering::Release);
    });
}

/// Returns the status of a child that ends. Kills a child that does not.
fn end_of(child: libc::pid_t) -> Option<i32> {
    let began = Instant::now();
    let mut status = 0;
    let mut killed = false;
    loop {
        // SAFETY: writes to `status`.
        let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        if ended == child {
            return (!killed).then_some(status);
        }
        assert_eq!(ended, 0);
        if began.elapsed() > GENEROUS && !killed {
            killed = true;
            // SAFETY: a child that has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Returns a word that the children share with their parent.
fn shared_word() -> &'static AtomicUsize {
    let length = size_of::<AtomicUsize>();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: new memory.
    let memory = unsafe { libc::mmap(ptr::null_mut(), length, access, kind, -1, 0) };
    assert_ne!(memory, libc::MAP_FAILED);
    // SAFETY: large enough, zeros, and never unmapped.
    unsafe { &*memory.cast() }
}
