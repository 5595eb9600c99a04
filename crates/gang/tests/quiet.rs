//! Members that wait for long sleep until they are woken: they use no processor, and do not wake up
//! in between.
//!
//! The kernel's counts of each thread tell: how often it was switched off its processor, and for
//! how long it has run. Nothing here depends on how long a member takes to go to sleep.
#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stanchion_gang::barrier::Barrier;
use stanchion_gang::{Broken, GangExecutor, Member, Waiter};

/// A window of time in which a thread that is woken each millisecond would be seen.
const WINDOW: Duration = Duration::from_millis(200);

/// No wait of a test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

fn this_thread() -> i32 {
    // SAFETY: cannot fail.
    unsafe { libc::gettid() }
}

/// Returns the kernel's counts of a thread that sleeps; `None` if it does not sleep.
fn counts(thread: i32) -> Option<Vec<String>> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    let field = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let asleep = field("State:").contains("S (sleeping)");
    let ran = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
    let ran = ran.unwrap_or_default();
    asleep
        .then(|| vec![field("voluntary_ctxt_switches:"), field("nonvoluntary_ctxt_switches:"), ran])
}

/// Returns when none of the threads has run for a while.
fn wait_until_quiet(what: &str, threads: &[i32]) {
    let begin = Instant::now();
    let all = || threads.iter().map(|&thread| counts(thread)).collect::<Option<Vec<_>>>();
    loop {
        let before = all();
        // A window begins only when all sleep.
        let window = if before.is_some() { WINDOW } else { Duration::from_millis(1) };
        std::thread::sleep(window);
        let after = all();
        if before.is_some() && before == after {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}: {before:?}, then {after:?}");
    }
}

fn executor(processors: usize) -> GangExecutor {
    GangExecutor::builder().processors(processors).build().expect("threads for a few members")
}

/// Lets member 2 of a gang of three keep the others waiting, by `keeps`, until they have been seen
/// asleep.
fn the_others_sleep(what: &str, keeps: fn(&mut Member, &dyn Fn())) {
    let executor = executor(3);
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let (here, waiting) = channel();
    let here = Mutex::new(here);
    let gang = executor
        .spawn(3, move |member: &mut Member| {
            if member.index() == 2 {
                keeps(member, &|| released.lock().unwrap().recv().unwrap());
            } else {
                here.lock().unwrap().send(this_thread()).unwrap();
            }
            member.all_reduce(member.index(), |a, b| a + b)
        })
        .expect("free processors");
    let threads: Vec<i32> = waiting.iter().take(2).collect();
    wait_until_quiet(what, &threads);
    release.send(()).unwrap();
    assert_eq!(gang.join().expect("no panic"), [3; 3]);
    executor.shutdown();
}

#[test]
fn members_sleep_while_one_is_blocking() {
    the_others_sleep("blocking", |member, wait| member.blocking(wait));
}

#[test]
fn members_sleep_while_one_sleeps_unannounced() {
    the_others_sleep("unannounced", |_, wait| wait());
}

/// Members sleep also while another gang takes turns with theirs.
#[test]
fn members_sleep_while_another_gang_runs() {
    let executor = executor(2);
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = stop.clone();
    let busy = executor.spawn(2, move |member: &mut Member| {
        while !member.broadcast(0, theirs.load(Ordering::Relaxed))? {}
        Ok(())
    });
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let (here, waiting) = channel();
    let here = Mutex::new(here);
    let gang = executor.spawn(2, move |member: &mut Member| {
        if member.index() == 0 {
            released.lock().unwrap().recv().unwrap();
        } else {
            here.lock().unwrap().send(this_thread()).unwrap();
        }
        member.barrier()
    });
    wait_until_quiet("beside another gang", &[waiting.recv().unwrap()]);
    release.send(()).unwrap();
    gang.unwrap().join().expect("no panic");
    stop.store(true, Ordering::Relaxed);
    busy.unwrap().join().expect("no panic");
    executor.shutdown();
}

/// A gang that is cancelled ends, although its members sleep.
#[test]
fn a_sleeping_member_learns_that_its_gang_has_ended() {
    let executor = executor(2);
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let (here, waiting) = channel();
    let here = Mutex::new(here);
    let gang = executor
        .spawn(2, move |member: &mut Member| {
            if member.index() == 0 {
                member.blocking(|| released.lock().unwrap().recv().unwrap());
                return Ok(());
            }
            here.lock().unwrap().send(this_thread()).unwrap();
            let ended = member.barrier();
            here.lock().unwrap().send(this_thread()).unwrap();
            ended
        })
        .expect("free processors");
    wait_until_quiet("before it is cancelled", &[waiting.recv().unwrap()]);
    gang.cancel();
    waiting.recv_timeout(PATIENCE).expect("it has learnt it");
    release.send(()).unwrap();
    assert!(gang.join().is_err());
    executor.shutdown();
}

/// Crosses three phases in which the last member is late, and a fourth that it breaks.
fn late<B: Barrier + 'static>(members: usize) {
    let what = std::any::type_name::<B>();
    let barrier = Arc::new(B::with_members(members).unwrap());
    let mut waiters = Waiter::all(barrier);
    // The last child in a tree, and a sender in each round of a dissemination.
    let mut late = waiters.pop().unwrap();
    let (here, waiting): (Sender<i32>, _) = channel();
    let others: Vec<_> = waiters
        .into_iter()
        .map(|mut waiter| {
            let here = here.clone();
            std::thread::spawn(move || {
                here.send(this_thread()).unwrap();
                let led = (0..3).filter(|_| waiter.wait().unwrap().is_leader()).count();
                assert_eq!(waiter.wait(), Err(Broken::Left));
                led
            })
        })
        .collect();
    let threads: Vec<i32> = waiting.iter().take(members - 1).collect();
    let mut led = 0;
    for _ in 0..3 {
        wait_until_quiet(what, &threads);
        led += usize::from(late.wait().unwrap().is_leader());
    }
    wait_until_quiet(what, &threads);
    drop(late);
    led += others.into_iter().map(|other| other.join().unwrap()).sum::<usize>();
    assert_eq!(led, 3, "{what}: one leader a phase");
}

/// A member that reaches its deadline while it sleeps breaks the barrier for the others that sleep.
fn times_out<B: Barrier + 'static>() {
    let what = std::any::type_name::<B>();
    let barrier = Arc::new(B::with_members(7).unwrap());
    let mut waiters = Waiter::all(barrier);
    let mut late = waiters.pop().unwrap();
    let others: Vec<_> = waiters
        .into_iter()
        .map(|mut waiter| {
            std::thread::spawn(move || {
                let short = Duration::from_millis(300);
                let timeout = if waiter.index() == 3 { short } else { 10 * PATIENCE };
                waiter.wait_timeout(timeout)
            })
        })
        .collect();
    for other in others {
        assert_eq!(other.join().unwrap(), Err(Broken::TimedOut), "{what}");
    }
    assert_eq!(late.wait(), Err(Broken::TimedOut), "{what}");
}

macro_rules! of_each_barrier {
    ([] $({
        $name:ident: $barrier:ty,
        name: $written:literal,
        sleeps: [$($type:ident, $test:ident)?],
        $($rest:tt)*
    })+) => {$($(
        #[test]
        fn $test() {
            // Beside each other: all of them sleep nearly all the time.
            std::thread::scope(|scope| {
                for members in [2, 7] {
                    scope.spawn(move || late::<$barrier>(members));
                }
                scope.spawn(times_out::<$barrier>);
            });
        }
    )?)+};
}

stanchion_gang::__barriers!(of_each_barrier);
