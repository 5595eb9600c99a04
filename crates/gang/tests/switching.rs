//! Slots that are switched by signals and by priorities: members that never check, that hold every
//! kind of lock when they are stopped, that block in the kernel.
//!
//! The tests assert progress, in counts, and no times.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use std::fs::File;
use std::hint::{black_box, spin_loop};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stanchion_gang::{Ended, GangError, GangExecutor, Member, Switching};

/// The shortest quantum that is a few times the cost of a switch.
const SHORT: Duration = Duration::from_micros(200);

fn executor(processors: usize, switching: Switching, quantum: Duration) -> GangExecutor {
    GangExecutor::builder()
        .processors(processors)
        .quantum(quantum)
        .switching(switching)
        .pin(true)
        .build()
        .unwrap()
}

/// Returns the modes that this system allows. It always allows signals.
fn modes() -> impl Iterator<Item = Switching> {
    assert_eq!(Switching::Signal.probe(), Ok(()));
    Switching::ALL.into_iter().filter(|mode| mode.probe().is_ok())
}

/// Returns the processors for a test that needs a CPU besides those of its members: preferred
/// members leave none.
fn processors(mode: Switching) -> usize {
    if mode == Switching::Priority { 1 } else { 2 }
}

/// Returns the modes that take members off which never check.
fn forcing_modes() -> impl Iterator<Item = Switching> {
    modes().filter(|mode| *mode != Switching::Cooperative)
}

/// Returns whether a thread that only ever computes is off its processor now, by the kernel's
/// files. Then it is asleep, which it can be in the handler only, or ordinary.
fn is_off(thread: i32, mode: Switching) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    // The name may have any character in it. After it come the state, the 3rd field, and the
    // policy, the 41st.
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    match mode {
        Switching::Signal => fields[0] == "S",
        _ => fields[41 - 3] == "0",
    }
}

#[test]
fn members_that_never_check_take_turns() {
    /// Looks at the other member, some 10 µs each: many turns.
    const LOOKS: u32 = 100_000;
    for mode in forcing_modes() {
        let executor = executor(1, mode, SHORT);
        assert_eq!(executor.switching(), mode);
        let threads = Arc::new([AtomicI32::new(0), AtomicI32::new(0)]);
        let turns = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let done = Arc::new(AtomicU32::new(0));
        let gangs = [0, 1].map(|mine| {
            let (threads, turns, done) = (threads.clone(), turns.clone(), done.clone());
            executor.spawn(1, move |_: &mut Member| {
                // SAFETY: cannot fail.
                threads[mine].store(unsafe { libc::gettid() }, SeqCst);
                // Five times: sees the other member off, and then that it has made progress.
                for _ in 0..5 {
                    let mut looks = 0;
                    let other = loop {
                        turns[mine].fetch_add(1, SeqCst);
                        let other = threads[1 - mine].load(SeqCst);
                        if other == 0 {
                            continue;
                        }
                        if is_off(other, mode) {
                            break turns[1 - mine].load(SeqCst);
                        }
                        looks += 1;
                        assert!(looks < LOOKS, "{mode:?}: the other is never off");
                    };
                    while turns[1 - mine].load(SeqCst) == other && done.load(SeqCst) == 0 {
                        turns[mine].fetch_add(1, SeqCst);
                    }
                }
                done.fetch_add(1, SeqCst);
                while done.load(SeqCst) < 2 {
                    turns[mine].fetch_add(1, SeqCst);
                }
                Ok(())
            })
        });
        for gang in gangs {
            gang.unwrap().join().unwrap();
        }
    }
}

/// A gang that checks makes progress beside one that does not: that one is taken off.
#[test]
fn neighbours_of_a_member_that_never_checks_get_on() {
    for mode in forcing_modes() {
        let executor = executor(processors(mode), mode, SHORT);
        let over = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&over);
        let hog = executor.spawn(processors(mode), move |_: &mut Member| {
            while !theirs.load(SeqCst) {
                spin_loop();
            }
            Ok(())
        });
        let neighbours = [(), ()].map(|()| {
            executor.spawn(processors(mode), |member: &mut Member| {
                let mut rounds = 0;
                while rounds < 300 {
                    rounds = member.broadcast(0, rounds + 1)?;
                }
                Ok(rounds)
            })
        });
        for gang in neighbours {
            assert_eq!(gang.unwrap().join().unwrap(), vec![300; processors(mode)]);
        }
        over.store(true, SeqCst);
        hog.unwrap().join().unwrap();
        if mode == Switching::Signal {
            assert!(executor.metrics().switches > 0);
        }
    }
}

/// Does everything that takes a lock or a page fault: a member is stopped in it.
fn mischief(member: &mut Member, shared: &Mutex<Vec<String>>, round: usize) -> Result<(), Ended> {
    let size = 1 + round * 7919 % 100_000;
    let page = black_box(vec![0_u8; size]);
    // A fault in each page.
    assert!(page.iter().step_by(4096).all(|byte| *byte == 0));
    let mut null = File::options().write(true).open("/dev/null").unwrap();
    writeln!(null, "{} {round} {size}", member.index()).unwrap();
    let mut words = shared.lock().unwrap();
    words.push(format!("{round}"));
    if words.len() > 100 {
        words.clear();
    }
    drop(words);
    let mut zeroes = [1_u8; 64];
    File::open("/dev/zero").unwrap().read_exact(&mut zeroes).unwrap();
    assert_eq!(zeroes, [0; 64]);
    if round.is_multiple_of(8) {
        member.barrier()?;
    }
    Ok(())
}

#[test]
fn a_member_may_be_stopped_anywhere() {
    const ROUNDS: usize = 400;
    for mode in modes() {
        let executor = executor(processors(mode), mode, SHORT);
        let shared = Arc::new(Mutex::new(Vec::new()));
        let gangs: Vec<_> = (0..3)
            .map(|_| {
                let shared = Arc::clone(&shared);
                executor.spawn(processors(mode), move |member: &mut Member| {
                    (0..ROUNDS).try_for_each(|round| mischief(member, &shared, round))?;
                    member.all_reduce(1_usize, |a, b| a + b)
                })
            })
            .collect();
        // Meanwhile threads outside and members want the allocator and the executor's own locks.
        for nested in 0..50 {
            let gang = executor.spawn(1, move |member: &mut Member| {
                let inner = member.executor().spawn(1, move |_: &mut Member| Ok(nested));
                Ok(inner.expect("there are slots").join().expect("it does not panic"))
            });
            assert_eq!(gang.unwrap().join().unwrap(), [[nested]]);
        }
        for gang in gangs {
            let members = processors(mode);
            assert_eq!(gang.unwrap().join().unwrap(), vec![members; members]);
        }
        let metrics = executor.metrics();
        assert_eq!((metrics.gangs_begun, metrics.gangs_ended), (103, 103), "{mode:?}");
        executor.shutdown();
    }
}

#[test]
fn gangs_are_cancelled_and_panic_while_slots_switch() {
    for mode in modes() {
        let executor = executor(processors(mode), mode, SHORT);
        for round in 0..30_u32 {
            let went = Arc::new(AtomicU32::new(0));
            let gangs: Vec<_> = (0..3)
                .map(|gang| {
                    let went = Arc::clone(&went);
                    executor.spawn(processors(mode), move |member: &mut Member| {
                        loop {
                            went.fetch_add(1, SeqCst);
                            if gang == 2
                                && member.index() + 1 == member.len()
                                && went.load(SeqCst) > round
                            {
                                std::panic::resume_unwind(Box::new("as planned"));
                            }
                            member.checkpoint()?;
                        }
                        #[expect(unreachable_code, reason = "gives the closure its type")]
                        Ok(())
                    })
                })
                .map(Result::unwrap)
                .collect();
            while went.load(SeqCst) < round * 20 {
                spin_loop();
            }
            gangs[0].cancel();
            gangs[1].cancel();
            let ends: Vec<_> = gangs.into_iter().map(|gang| gang.join().unwrap_err()).collect();
            assert!(matches!(ends[0], GangError::Cancelled), "{:?}", ends[0]);
            assert!(matches!(ends[1], GangError::Cancelled), "{:?}", ends[1]);
            assert!(matches!(ends[2], GangError::Panicked { .. }), "{:?}", ends[2]);
        }
    }
}

/// A blocking call is interrupted again and again while its member's slot comes and goes, and gets
/// its data.
#[test]
fn a_blocking_call_is_restarted() {
    for mode in forcing_modes() {
        let executor = executor(1, mode, SHORT);
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let read = executor.scope(|scope| {
            let reader = Mutex::new(&mut reader);
            let got = scope.spawn(1, move |_: &mut Member| {
                let mut byte = [0_u8];
                let mut reader = reader.lock().unwrap();
                (0..3).for_each(|_| reader.read_exact(&mut byte).unwrap());
                Ok(byte[0])
            });
            let before = executor.metrics().rotations_by_quantum;
            for byte in [7, 8, 9] {
                // Two members that never check, and slots that take turns meanwhile.
                let (executor, enough) = (&executor, before + u64::from(byte) * 2);
                let busy = scope.spawn(1, move |_: &mut Member| {
                    while executor.metrics().rotations_by_quantum < enough {
                        spin_loop();
                    }
                    Ok(())
                });
                busy.unwrap().join().unwrap();
                writer.write_all(&[byte]).unwrap();
            }
            got.unwrap().join().unwrap()
        });
        assert_eq!(read, [9]);
    }
}

/// Runs in a process of its own, which ignores all signals that could be chosen.
#[test]
fn a_refused_mode_degrades_to_cooperation() {
    stanchion_alone::alone("a_refused_mode_degrades_to_cooperation", || {
        for signal in libc::SIGRTMIN()..=libc::SIGRTMAX() {
            // SAFETY: ignores a signal that no thread sends.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let executor = executor(1, Switching::Signal, SHORT);
        assert_eq!(executor.switching(), Switching::Cooperative);
        let why = executor.switching_refused().unwrap().to_string();
        assert!(why.contains("no signal is free"), "{why}");
        assert_eq!(executor.spawn(1, |_: &mut Member| Ok(1)).unwrap().join().unwrap(), [1]);
    });
}
