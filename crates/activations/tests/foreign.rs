//! Effects on kernel threads of code that knows nothing of user-level threads: affinity,
//! signals and their stacks, records that run out.
#![cfg(target_os = "linux")]

use core::mem::MaybeUninit;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use stanchion_activations::{Runtime, Tier, blocking, park_timeout, spawn, yield_now};
use stanchion_machine::presence;

/// The processors on which the calling kernel thread may run.
fn affinity() -> libc::cpu_set_t {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: a place of that size.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), set.as_mut_ptr()) };
    assert_eq!(result, 0);
    // SAFETY: zeros are a set, and the kernel has written one.
    unsafe { set.assume_init() }
}

fn set_affinity(set: &libc::cpu_set_t) {
    // SAFETY: a set of that size.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(set), set) };
    assert_eq!(result, 0);
}

fn count(set: &libc::cpu_set_t) -> i32 {
    // SAFETY: a set.
    unsafe { libc::CPU_COUNT(set) }
}

/// The first of those processors alone.
fn first_of(set: &libc::cpu_set_t) -> libc::cpu_set_t {
    // SAFETY: zeros are the empty set.
    let mut first = unsafe { core::mem::zeroed() };
    // SAFETY: a number below the set's size.
    let is_in = |number: &usize| unsafe { libc::CPU_ISSET(*number, set) };
    let number = (0..libc::CPU_SETSIZE as usize).find(is_in).unwrap();
    // SAFETY: likewise.
    unsafe { libc::CPU_SET(number, &mut first) };
    first
}

/// Some hundred threads that fork, join and yield.
fn all_end(runtime: &Runtime) {
    let threads: Vec<_> = (0..200)
        .map(|number| {
            runtime.spawn(move || {
                yield_now();
                number + spawn(|| 1).join().unwrap()
            })
        })
        .collect();
    let sum: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(sum, (1..=200).sum::<usize>());
}

#[test]
fn a_foreign_function_that_pins_its_kernel_thread_pins_no_other_and_nothing_is_lost() {
    let before = affinity();
    for pinned in [false, true] {
        let runtime = Runtime::builder().processors(2).pinned(pinned).build().unwrap();
        for _ in 0..4 {
            runtime.run(move || set_affinity(&first_of(&before)));
            all_end(&runtime);
        }
    }
    assert_eq!(count(&affinity()), count(&before), "the process's other threads are as they were");
}

#[test]
fn kernel_thread_with_changed_affinity_is_pinned_anew_with_its_next_slot() {
    let all = affinity();
    let runtime = Runtime::builder().processors(1).pinned(true).build().unwrap();
    let (sends, receives) = mpsc::channel();
    let thread = runtime.spawn(move || {
        assert_eq!(count(&affinity()), 1);
        set_affinity(&all);
        // Its slot goes to another, and it has to wait for it before it goes on.
        blocking(|| receives.recv().unwrap());
        yield_now();
        count(&affinity())
    });
    runtime.spawn(move || sends.send(()).unwrap()).join().unwrap();
    assert_eq!(thread.join().unwrap(), 1);
}

/// Signals are the process's: one test of them at a time.
static SIGNALS: Mutex<()> = Mutex::new(());
static CAME: AtomicUsize = AtomicUsize::new(0);
/// Where the last handler had its locals.
static FRAME: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handler(_signal: libc::c_int) {
    let local = [0_u8; 256];
    FRAME.store(core::hint::black_box(&local).as_ptr().addr(), Ordering::Relaxed);
    CAME.fetch_add(1, Ordering::Relaxed);
}

fn install(flags: libc::c_int) {
    // SAFETY: zeros are an action; its fields are set below.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = flags;
    // SAFETY: the handler touches atomics only.
    let result = unsafe { libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut()) };
    assert_eq!(result, 0);
}

/// The handler's frame, of a signal that the calling thread sends itself, and that of the caller.
fn raised() -> (usize, usize) {
    let local = 0_u8;
    // SAFETY: a handler is installed.
    assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    (FRAME.load(Ordering::Relaxed), (&raw const local).addr())
}

#[test]
fn a_handler_runs_on_the_stack_of_the_thread_that_it_meets_unless_it_asks_for_another() {
    const STACK: usize = 64 * 1024;
    let _alone = SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Runtime::builder().processors(1).stack_size(STACK).build().unwrap();
    install(libc::SA_RESTART);
    let (handler, thread) = runtime.run(raised);
    assert!(handler < thread && thread - handler < STACK, "{handler:#x} {thread:#x}");
    install(libc::SA_RESTART | libc::SA_ONSTACK);
    let (handler, thread) = runtime.run(raised);
    assert!(handler.abs_diff(thread) > STACK, "on the kernel thread's: {handler:#x} {thread:#x}");
}

#[test]
fn signals_that_come_at_any_time_lose_no_thread_and_no_wake_up() {
    let _alone = SIGNALS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id() as libc::pid_t;
    // Without SA_RESTART: what sleeps in the kernel comes back early.
    for flags in [0, libc::SA_ONSTACK] {
        install(flags);
        let before = CAME.load(Ordering::Relaxed);
        let over = Arc::new(AtomicBool::new(false));
        let runtime = Arc::new(Runtime::new(2).unwrap());
        let works = {
            let (runtime, over) = (runtime.clone(), over.clone());
            std::thread::spawn(move || {
                for _ in 0..20 {
                    all_end(&runtime);
                    let (mut here, mut there) = UnixStream::pair().unwrap();
                    let waits = runtime.spawn(move || there.read_exact(&mut [0]).unwrap());
                    let sleeps = runtime.spawn(|| park_timeout(Duration::from_micros(300)));
                    runtime.spawn(move || here.write_all(&[1]).unwrap()).join().unwrap();
                    waits.join().unwrap();
                    assert!(!sleeps.join().unwrap());
                }
                over.store(true, Ordering::Release);
            })
        };
        while !over.load(Ordering::Acquire) && !works.is_finished() {
            for task in std::fs::read_dir("/proc/self/task").unwrap() {
                let tid: libc::pid_t = task.unwrap().file_name().to_str().unwrap().parse().unwrap();
                // SAFETY: a handler is installed; a thread that has ended is an error.
                unsafe { libc::syscall(libc::SYS_tgkill, process, tid, libc::SIGUSR1) };
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        works.join().unwrap();
        assert!(CAME.load(Ordering::Relaxed) > before);
    }
}

#[test]
fn kernel_threads_without_records_beside_some_that_have_them_are_found_as_well() {
    // As when the locked memory is used up: the first have records, those that stand in for them
    // do not.
    let runtime = Runtime::new(2).unwrap();
    all_end(&runtime);
    let declined = presence::decline();
    for _ in 0..10 {
        let (ends, others): (Vec<_>, Vec<_>) = (0..6).map(|_| UnixStream::pair().unwrap()).unzip();
        let waiting: Vec<_> = others
            .into_iter()
            .map(|mut from| runtime.spawn(move || from.read_exact(&mut [0]).unwrap()))
            .collect();
        let writes = runtime.spawn(move || {
            yield_now();
            ends.into_iter().for_each(|mut end| end.write_all(&[1]).unwrap());
        });
        writes.join().unwrap();
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
    }
    drop(declined);
    assert!(matches!(runtime.capabilities().tier, Tier::Records | Tier::Heartbeats(_)));
}

#[test]
fn a_thread_that_blocks_for_ever_keeps_its_kernel_thread_and_nothing_else() {
    let runtime = Runtime::new(1).unwrap();
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let blocks = runtime.spawn(move || there.read_exact(&mut [0]).unwrap());
    (0..5).for_each(|_| all_end(&runtime));
    assert!(!blocks.is_finished());
    here.write_all(&[1]).unwrap();
    blocks.join().unwrap();
}
