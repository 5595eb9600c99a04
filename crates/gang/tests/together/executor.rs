//! Gangs on real threads: the use of each operation, and each way in which it can go wrong.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use stanchion_gang::{Ended, GangError, GangExecutor, GangScope, Member, SpawnError, data};

static_assertions::assert_impl_all!(GangExecutor: Send, Sync, Clone);
static_assertions::assert_impl_all!(stanchion_gang::GangHandle<u8>: Send);
// A member belongs to its own thread.
static_assertions::assert_not_impl_any!(Member: Send, Sync);

fn executor(processors: usize) -> GangExecutor {
    GangExecutor::builder()
        .processors(processors)
        .quantum(Duration::from_millis(1))
        .build()
        .expect("threads for a few members")
}

#[test]
fn the_members_of_a_gang_meet() {
    let executor = executor(3);
    let gang = executor
        .spawn(3, |member: &mut Member| {
            let me = member.index() as u64;
            for _ in 0..100 {
                member.barrier()?;
            }
            assert_eq!(member.broadcast(1, me * 7)?, 7);
            assert_eq!(member.all_reduce(me, |a, b| a + b)?, 3);
            assert_eq!(member.reduce(2, me, |a, b| a * 10 + b)?, (me == 2).then_some(12));
            assert_eq!(member.all_gather([me; 20])?, [[0; 20], [1; 20], [2; 20]]);
            assert_eq!(member.gather(0, me as f64)?.is_some(), me == 0);
            assert_eq!(member.scatter(0, (me == 0).then(|| vec![5_u8, 6, 7]))?, 5 + me as u8);
            Ok((member.len(), member.processor()))
        })
        .expect("free processors");
    let mut processors: Vec<_> =
        gang.join().expect("no panic").iter().map(|(_, processor)| *processor).collect();
    processors.sort_unstable();
    assert_eq!(processors, [0, 1, 2]);
    executor.shutdown();
}

#[test]
fn more_gangs_than_processors_take_turns() {
    let executor = executor(2);
    let gangs: Vec<_> = (0..7)
        .map(|gang| {
            executor
                .spawn(1 + gang % 2, move |member: &mut Member| {
                    let mut sum = 0;
                    for round in 0..2_000 {
                        sum += member.all_reduce(round, u64::wrapping_add)?;
                    }
                    Ok(sum)
                })
                .expect("slots")
        })
        .collect();
    for gang in gangs {
        let size = gang.size() as u64;
        assert_eq!(gang.join().expect("no panic"), vec![1_999_000 * size; size as usize]);
    }
    let metrics = executor.metrics();
    assert_eq!((metrics.gangs_begun, metrics.gangs_ended, metrics.slots_used), (7, 7, 0));
    executor.shutdown();
}

#[test]
fn empty_and_too_large_gangs_are_refused() {
    let executor = executor(2);
    assert!(matches!(executor.spawn(0, |_| Ok(())), Err(SpawnError::Empty)));
    let refused = executor.spawn(3, |_| Ok(())).unwrap_err();
    assert!(matches!(refused, SpawnError::TooLarge { asked: 3, processors: 2 }));
    assert!(refused.to_string().contains("2 virtual processors"), "{refused}");
}

#[test]
fn a_panic_ends_the_gang_and_hangs_no_member() {
    let executor = executor(3);
    let gang = executor
        .spawn(3, |member: &mut Member| {
            member.barrier()?;
            assert!(member.index() != 1, "on purpose");
            let ended = member.barrier();
            assert_eq!(ended, Err(Ended::Panicked { member: 1 }));
            ended
        })
        .expect("free processors");
    match gang.join() {
        Err(error @ GangError::Panicked { member: 1, .. }) => {
            assert!(error.to_string().contains("on purpose"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    executor.shutdown();
}

#[test]
fn a_cancelled_gang_ends_at_its_next_check() {
    let executor = executor(2);
    let begun = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = begun.clone();
    let gang = executor
        .spawn(2, move |member: &mut Member| {
            counted.fetch_add(1, Ordering::Relaxed);
            loop {
                if member.index() == 0 {
                    member.checkpoint()?;
                } else {
                    member.barrier()?;
                }
            }
            #[expect(unreachable_code)]
            Ok(())
        })
        .expect("free processors");
    while begun.load(Ordering::Relaxed) < 2 {
        std::thread::yield_now();
    }
    gang.cancel();
    assert!(matches!(gang.join(), Err(GangError::Cancelled)));
    executor.shutdown();
}

#[test]
fn an_early_return_leaves_no_member_waiting() {
    let executor = executor(2);
    let gang = executor
        .spawn(2, |member: &mut Member| if member.index() == 0 { Ok(()) } else { member.barrier() })
        .expect("free processors");
    assert!(matches!(gang.join(), Err(GangError::Left { member: 0 })));
    executor.shutdown();
}

#[test]
fn a_member_spawns_a_gang_and_waits_for_it() {
    let executor = executor(2);
    let gang = executor
        .spawn(2, |member: &mut Member| {
            let inner = member
                .executor()
                .spawn(2, |member: &mut Member| member.all_reduce(member.index(), |a, b| a + b));
            let inner = inner.expect("slots").join().expect("no panic");
            member.all_reduce(inner[0] + inner[1], |a, b| a + b)
        })
        .expect("free processors");
    assert_eq!(gang.join().expect("no panic"), [4, 4]);
    executor.shutdown();
}

#[test]
fn a_scope_waits_also_for_forgotten_handles() {
    let executor = executor(2);
    let done = AtomicUsize::new(0);
    let text = String::from("borrowed");
    executor.scope(|scope| {
        let forgotten = scope.spawn(2, |member: &mut Member| {
            member.barrier()?;
            std::thread::sleep(Duration::from_millis(5));
            done.fetch_add(text.len(), Ordering::Relaxed);
            Ok(())
        });
        std::mem::forget(forgotten);
    });
    assert_eq!(done.load(Ordering::Relaxed), 16);
    executor.shutdown();
}

#[test]
fn a_scope_propagates_an_unclaimed_panic() {
    let executor = executor(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        executor.scope(|scope| {
            let unseen = scope.spawn(1, |_| -> Result<(), Ended> { panic!("unseen") });
            drop(unseen);
        });
    }));
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"unseen"));
    executor.shutdown();
}

#[test]
fn a_member_that_never_checks_is_named_and_stops_no_gang() {
    let executor = executor(1);
    let [begun, stop] = [(); 2].map(|()| std::sync::Arc::new(AtomicBool::new(false)));
    let (begins, stopped) = (begun.clone(), stop.clone());
    let deaf = executor
        .spawn(1, move |_| {
            begins.store(true, Ordering::Relaxed);
            while !stopped.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok(())
        })
        .expect("a slot");
    // A member that has not begun has no processor, so it need not be evicted.
    while !begun.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    for _ in 0..3 {
        let other = executor.spawn(1, |member: &mut Member| member.barrier()).expect("a slot");
        other.join().expect("it gets its turn");
    }
    let culprits = executor.metrics().culprits;
    assert!(
        culprits.iter().any(|culprit| culprit.gang == deaf.id() && culprit.now),
        "{culprits:?}"
    );
    stop.store(true, Ordering::Relaxed);
    deaf.join().expect("no panic");
    executor.shutdown();
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn panics_in_odd_places_end_the_gang_only() {
    let executor = executor(2);
    let blocking = executor
        .spawn(2, |member: &mut Member| {
            if member.index() == 0 {
                member.blocking(|| panic!("while it is away"));
            }
            member.barrier()
        })
        .expect("free processors");
    assert!(matches!(blocking.join(), Err(GangError::Panicked { member: 0, .. })));
    let folding = executor
        .spawn(2, |member: &mut Member| {
            member.reduce(1, 1, |_, _| panic!("in the operation"))?;
            member.barrier()
        })
        .expect("free processors");
    assert!(matches!(folding.join(), Err(GangError::Panicked { member: 1, .. })));
    let bomb = Bomb;
    let has_handle = std::sync::Arc::new(AtomicBool::new(true));
    let held = has_handle.clone();
    let closure = executor.spawn(2, move |member: &mut Member| {
        let _ = &bomb;
        while held.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        member.barrier()
    });
    // The members drop the closure: they outlive the handle, which has a reference to it.
    drop(closure.expect("free processors"));
    has_handle.store(false, Ordering::Relaxed);
    let mixed = executor
        .spawn(2, |member: &mut Member| {
            if member.index() == 0 { member.all_gather(1_u8).map(drop) } else { member.barrier() }
        })
        .expect("free processors");
    assert!(matches!(mixed.join(), Err(GangError::Panicked { member: 0, .. })));
    let after = executor.spawn(2, |member: &mut Member| member.all_reduce(1, |a, b| a + b));
    assert_eq!(after.expect("free processors").join().expect("no panic"), [2, 2]);
    executor.shutdown();
}

#[test]
fn a_member_that_blocks_unannounced_stops_no_gang() {
    let executor = executor(1);
    let (send, receive) = std::sync::mpsc::channel();
    let receive = std::sync::Mutex::new(receive);
    let blocked = executor
        .spawn(1, move |_| Ok(receive.lock().expect("not poisoned").recv().expect("sent")))
        .expect("a slot");
    let other = executor.spawn(1, |member: &mut Member| member.barrier()).expect("a slot");
    other.join().expect("it gets its turn");
    send.send(3).expect("received");
    assert_eq!(blocked.join().expect("no panic"), [3]);
    executor.shutdown();
}

#[test]
fn a_gang_that_is_blocked_gives_its_slot_away() {
    let executor = executor(1);
    let (send, receive) = std::sync::mpsc::channel();
    let receive = std::sync::Mutex::new(receive);
    let blocked = executor
        .spawn(1, move |member: &mut Member| {
            Ok(member.blocking(|| receive.lock().expect("not poisoned").recv().expect("sent")))
        })
        .expect("a slot");
    let other = executor.spawn(1, |member: &mut Member| member.barrier()).expect("a slot");
    other.join().expect("it gets its turn");
    send.send(7).expect("received");
    assert_eq!(blocked.join().expect("no panic"), [7]);
    executor.shutdown();
}

#[test]
fn an_executor_dropped_by_a_member_runs_to_the_end() {
    let (send, receive) = std::sync::mpsc::channel();
    let executor = executor(2);
    let handle = std::sync::Mutex::new(Some(executor.clone()));
    let gang = executor
        .spawn(2, move |member: &mut Member| {
            drop(handle.lock().expect("not poisoned").take());
            member.barrier()?;
            let _ = send.send(member.index());
            Ok(())
        })
        .expect("free processors");
    drop(executor);
    gang.join().expect("no panic");
    assert_eq!(receive.iter().count(), 2);
}

#[test]
fn an_executor_refuses_gangs_after_shutdown() {
    let executor = executor(1);
    let other = executor.clone();
    executor.shutdown();
    assert!(matches!(other.spawn(1, |_| Ok(())), Err(SpawnError::Closed)));
}

/// Waits until a flag is set.
fn until(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// A gang that never checks is moved. It holds a processor of another gang until the timer evicts
/// it. The turn is open, so nothing else would.
#[test]
fn a_moved_member_that_never_checks_blocks_no_processor() {
    static RETURN: AtomicBool = AtomicBool::new(false);
    static END: AtomicBool = AtomicBool::new(false);
    static BEGUN: AtomicBool = AtomicBool::new(false);
    static STOP: AtomicBool = AtomicBool::new(false);
    let hour = Duration::from_secs(3600);
    let executor = GangExecutor::builder().processors(2).quantum(hour).build().expect("a timer");
    let blocked = |flag: &'static AtomicBool| {
        let gang = executor.spawn(1, move |member| {
            member.blocking(|| until(flag));
            Ok(())
        });
        gang.expect("a slot")
    };
    let returns = blocked(&RETURN);
    let ends = blocked(&END);
    let deaf = executor.spawn(1, |_| {
        BEGUN.store(true, Ordering::Release);
        until(&STOP);
        Ok(())
    });
    until(&BEGUN);
    END.store(true, Ordering::Release);
    ends.join().expect("no panic");
    assert_eq!(executor.metrics().gangs_moved, 1);
    RETURN.store(true, Ordering::Release);
    returns.join().expect("it gets its processor");
    STOP.store(true, Ordering::Release);
    deaf.expect("a slot").join().expect("no panic");
    executor.shutdown();
}

/// A value that spawns a gang in the scope when it is dropped.
struct Spawns<'scope, 'env> {
    scope: &'scope GangScope<'scope, 'env>,
    ended: &'env AtomicUsize,
}

impl Drop for Spawns<'_, '_> {
    fn drop(&mut self) {
        let ended = self.ended;
        let gang = self.scope.spawn(1, move |member| {
            member.blocking(|| std::thread::sleep(Duration::from_millis(5)));
            ended.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        drop(gang);
    }
}

#[test]
fn a_scope_waits_for_what_is_spawned_when_a_closure_is_dropped() {
    let executor = executor(2);
    let ended = AtomicUsize::new(0);
    executor.scope(|scope| {
        let spawns = Spawns { scope, ended: &ended };
        drop(scope.spawn(1, move |_| {
            let _ = &spawns;
            Ok(())
        }));
    });
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    executor.shutdown();
}

/// The same by the next gang that is spawned, which drops the closures of the gangs before it.
#[test]
fn a_closure_that_spawns_when_it_is_dropped_meets_no_lock() {
    let executor = executor(2);
    let ended = AtomicUsize::new(0);
    executor.scope(|scope| {
        let spawns = Spawns { scope, ended: &ended };
        let gang = scope
            .spawn(1, move |_| {
                let _ = &spawns;
                Ok(())
            })
            .expect("a slot");
        while !gang.is_finished() {
            std::thread::yield_now();
        }
        drop(gang);
        drop(scope.spawn(1, |_| Ok(())));
        while ended.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
    });
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    executor.shutdown();
}

/// The payload of a panic, which panics when it is dropped.
struct Malicious;

impl Drop for Malicious {
    fn drop(&mut self) {
        panic!("again")
    }
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        std::panic::panic_any(Malicious)
    }
}

#[test]
fn a_closure_that_panics_when_it_is_dropped_stops_no_thread() {
    let executor = executor(1);
    let begin = std::sync::Arc::new(AtomicBool::new(false));
    let (bomb, begins) = (PanicsWhenDropped, begin.clone());
    let gang = executor.spawn(1, move |_| {
        until(&begins);
        let _ = &bomb;
        Ok(())
    });
    drop(gang);
    begin.store(true, Ordering::Release);
    // It waits for the thread that drops it.
    executor.shutdown();
}

/// All but the first of a gang's panics are dropped. If one panics then, the first is still
/// returned, and the process goes on.
#[test]
fn of_several_panics_the_first_is_handed_out() {
    let executor = executor(3);
    let body = |_: &mut Member| -> Result<(), Ended> { std::panic::panic_any(Malicious) };
    let joined = executor.spawn(3, body).expect("free processors").join();
    let Err(GangError::Panicked { member: 0, payload }) = joined else { panic!("{joined:?}") };
    std::mem::forget(payload);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        executor.scope(|scope| drop(scope.spawn(3, body)));
    }));
    let payload = caught.expect_err("the first");
    assert!(payload.is::<Malicious>());
    std::mem::forget(payload);
    executor.shutdown();
}

/// The scope has a gang in its list when the gang cannot be spawned, and must not wait for it.
#[test]
fn a_scope_waits_for_no_gang_that_was_refused() {
    let executor = GangExecutor::builder().processors(1).slots(1).build().expect("a timer");
    for _ in 0..50 {
        let (begun, leaves) = (AtomicBool::new(false), AtomicBool::new(false));
        executor.scope(|scope| {
            let flags = (&begun, &leaves);
            let spawner = scope.spawn(1, move |_| {
                flags.0.store(true, Ordering::Release);
                // Some more, to meet the scope's end.
                let mut more = 20;
                while more > 0 {
                    assert!(scope.spawn(1, |_| Ok(())).is_err(), "there is one slot");
                    more -= usize::from(flags.1.load(Ordering::Relaxed));
                }
                Ok(())
            });
            drop(spawner);
            until(&begun);
            leaves.store(true, Ordering::Relaxed);
        });
    }
    executor.shutdown();
}

/// One struct is larger than the inline part of a buffer, and one is smaller.
#[test]
fn structs_of_the_program_are_handed_over() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Large {
        numbers: [u64; 30],
        small: Small,
    }
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Small(u32, f32);
    data!(struct Small(number, fraction));
    data!(struct Large { small, numbers });

    let large =
        |member: usize| Large { numbers: [member as u64; 30], small: Small(member as u32, 0.5) };
    let executor = executor(3);
    let gang = executor
        .spawn(3, move |member: &mut Member| {
            let mine = large(member.index());
            let all = member.all_gather(mine)?;
            assert_eq!(all, [large(0), large(1), large(2)]);
            let small = member.gather_lists(0, vec![mine.small; member.index()])?;
            Ok((member.broadcast(2, mine)?, small.map(|lists| lists.concat())))
        })
        .expect("free processors");
    let outcomes = gang.join().expect("no panic");
    assert!(outcomes.iter().all(|(last, _)| *last == large(2)));
    assert_eq!(outcomes[0].1, Some(vec![Small(1, 0.5), Small(2, 0.5), Small(2, 0.5)]));
    executor.shutdown();
}
