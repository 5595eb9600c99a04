//! Barriers under real threads, more of them than processors: no member goes on before all have
//! arrived, and a phase is crossed by all or broken for all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use stanchion_gang::barrier::{
    Barrier, BitMask, Blocking, Central, CoResident, Dissemination, MOST_MEMBERS, Tree, TwoPhase,
    Yielding,
};
use stanchion_gang::{Broken, Waiter, WrongSize};

static_assertions::assert_impl_all!(Central: Send, Sync);
static_assertions::assert_impl_all!(Waiter<&Tree>: Send);
static_assertions::assert_not_impl_any!(Waiter<&Tree>: Clone);

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Runs `body` as every member, and returns the result of each that did not panic.
fn together<'b, B: Barrier, R: Send>(
    barrier: &'b B,
    body: impl Fn(Waiter<&'b B>) -> R + Sync,
) -> Vec<Result<R, ()>> {
    thread::scope(|scope| {
        let members: Vec<_> = Waiter::all(barrier)
            .into_iter()
            .map(|waiter| {
                let body = &body;
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn_scoped(scope, move || body(waiter))
                    .expect("a thread")
            })
            .collect();
        members.into_iter().map(|member| member.join().map_err(drop)).collect()
    })
}

/// Lets members cross so many phases. None is ever more than one ahead.
fn cross<B: Barrier>(members: usize, phases: usize) {
    let barrier = B::with_members(members).unwrap();
    let progress: Vec<_> = (0..members).map(|_| AtomicUsize::new(0)).collect();
    let led = together(&barrier, |mut waiter| {
        let mut random = Random(waiter.index() as u64 + 1);
        let mut led = 0;
        for phase in 1..=phases {
            if random.below(4) == 0 {
                thread::yield_now();
            }
            // Relaxed: the barrier orders it, which is what is tested.
            progress[waiter.index()].store(phase, Relaxed);
            led += usize::from(waiter.wait().unwrap().is_leader());
            for other in &progress {
                let there = other.load(Relaxed);
                assert!(there == phase || there == phase + 1, "{there} in {phase}");
            }
        }
        led
    });
    assert_eq!(led.into_iter().map(Result::unwrap).sum::<usize>(), phases);
}

fn of_every_size<B: Barrier>() {
    for members in [1, 2, 3, 5, 8] {
        cross::<B>(members, 100);
    }
    cross::<B>(64, 5);
    assert!(format!("{:?}", B::with_members(3).unwrap()).contains('3'));
}

fn a_wrong_size_is_refused<B: Barrier>() {
    for members in [0, MOST_MEMBERS + 1, usize::MAX] {
        let refused: WrongSize = B::with_members(members).unwrap_err();
        assert_eq!(refused.asked(), members);
        assert!(refused.to_string().contains(&members.to_string()), "{refused}");
        assert!(refused.to_string().contains(&refused.most().to_string()), "{refused}");
        assert!(B::with_members(3).is_ok_and(|barrier| barrier.members() == 3));
    }
    let outsider = catch_unwind(|| drop(B::with_members(3).unwrap().member_state(3)));
    assert!(outsider.is_err(), "there is no fourth of three");
}

/// Lets one member panic in some phase instead of waiting.
fn a_panic_is_told<B: Barrier>() {
    for (members, victim, phase) in [(2, 0, 0), (2, 1, 3), (7, 0, 1), (7, 3, 2), (7, 6, 5)] {
        let barrier = B::with_members(members).unwrap();
        let ends = together(&barrier, |mut waiter| {
            for now in 0.. {
                if waiter.index() == victim && now == phase {
                    // Without the hook's message.
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
                if let Err(why) = waiter.wait() {
                    return (now, why);
                }
            }
            unreachable!()
        });
        for (index, end) in ends.into_iter().enumerate() {
            match end {
                Ok(end) => assert_eq!(end, (phase, Broken::Panicked), "member {index}"),
                Err(_) => assert_eq!(index, victim),
            }
        }
        assert_eq!(barrier.broken(), Some(Broken::Panicked));
    }
}

/// Lets members leave after different numbers of phases, some before the others have seen the end
/// of their last phase.
fn a_leaver_is_missed<B: Barrier>() {
    for round in 0..40 {
        let barrier = B::with_members(4).unwrap();
        let crossed = together(&barrier, |mut waiter| {
            let stays = 1 + (waiter.index() + round) % 4;
            (0..stays).take_while(|_| waiter.wait().is_ok()).count()
        });
        for crossed in crossed {
            assert_eq!(
                crossed.unwrap(),
                1,
                "the one that left after the first is missed in the second"
            );
        }
    }
}

/// Gives every wait a deadline, so short that some pass.
fn deadlines_split_no_phase<B: Barrier>() {
    let mut broken = 0;
    for round in 0..30 {
        const PHASES: usize = 50;
        let members = 2 + round % 4;
        let barrier = B::with_members(members).unwrap();
        let crossed = together(&barrier, |mut waiter| {
            let mut random = Random((round * 31 + waiter.index()) as u64 + 1);
            let crossed = (0..PHASES)
                .take_while(|_| {
                    let micros = random.below(400);
                    waiter.wait_timeout(Duration::from_micros(micros)).is_ok()
                })
                .count();
            if crossed < PHASES {
                let again = waiter.wait();
                assert!(matches!(again, Err(Broken::TimedOut)), "for good: {again:?}");
            }
            // No member leaves before all are through.
            (crossed, waiter)
        });
        let crossed: Vec<_> = crossed.into_iter().map(|end| end.unwrap().0).collect();
        assert!(crossed.iter().all(|&each| each == crossed[0]), "{crossed:?}");
        broken += usize::from(crossed[0] < PHASES);
    }
    assert!(broken > 0, "no deadline has passed");
}

macro_rules! barriers {
    ([] $({ $test:ident: $barrier:ty, $($rest:tt)* })+) => {$(
        mod $test {
            #[test]
            fn of_every_size() {
                super::of_every_size::<$barrier>();
            }

            #[test]
            fn a_wrong_size_is_refused() {
                super::a_wrong_size_is_refused::<$barrier>();
            }

            #[test]
            fn a_panic_is_told() {
                super::a_panic_is_told::<$barrier>();
            }

            #[test]
            fn a_leaver_is_missed() {
                super::a_leaver_is_missed::<$barrier>();
            }

            #[test]
            fn deadlines_split_no_phase() {
                super::deadlines_split_no_phase::<$barrier>();
            }
        }
    )+};
}

stanchion_gang::__barriers!(barriers);

#[test]
fn a_thousand_members() {
    cross::<Central>(1_000, 2);
    cross::<Tree>(1_000, 2);
    cross::<Dissemination>(1_000, 2);
    cross::<Blocking>(1_000, 2);
    cross::<CoResident>(1_000, 2);
}

#[test]
fn a_mask_names_missing_members() {
    assert_eq!(BitMask::new(65).unwrap_err().most(), 64);
    let barrier = BitMask::new(3).unwrap();
    let mut waiters = Waiter::all(&barrier);
    thread::scope(|scope| {
        let last = waiters.pop().unwrap();
        for mut waiter in waiters {
            scope.spawn(move || {
                assert!(waiter.wait().is_ok());
                assert_eq!(waiter.wait(), Err(Broken::Left));
            });
        }
        let mut last = last;
        while barrier.missing() != 0b100 {
            thread::yield_now();
        }
        assert!(last.wait().is_ok());
        while barrier.missing() != 0b100 {
            thread::yield_now();
        }
    });
}

/// No wait for other threads takes so long.
const LONG: Duration = Duration::from_secs(60);

/// Tests barriers of anonymous members, as the standard library's, with more threads than members.
macro_rules! of_anonymous_members {
    ($($name:ident: $barrier:ty;)+) => {$(
        #[test]
        fn $name() {
            const MEMBERS: usize = 3;
            const PHASES: usize = 500;
            let barrier = <$barrier>::new(MEMBERS).unwrap();
            let (tickets, led) = (AtomicUsize::new(0), AtomicUsize::new(0));
            thread::scope(|scope| {
                for _ in 0..5 {
                    scope.spawn(|| {
                        // A ticket is the right to arrive once. There are as many as the phases
                        // need, so each arrival crosses.
                        while tickets.fetch_add(1, Relaxed) < MEMBERS * PHASES {
                            let crossing = barrier.wait_timeout(LONG).unwrap();
                            led.fetch_add(usize::from(crossing.is_leader()), Relaxed);
                        }
                    });
                }
            });
            assert_eq!(led.into_inner(), PHASES);
            thread::scope(|scope| {
                let other = scope.spawn(|| barrier.wait());
                assert_eq!(barrier.wait_timeout(Duration::from_millis(1)), Err(Broken::TimedOut));
                assert_eq!(other.join().unwrap(), Err(Broken::TimedOut));
            });
            assert_eq!(barrier.wait(), Err(Broken::TimedOut));
        }
    )+};
}

of_anonymous_members! {
    strangers_at_central: Central;
    strangers_at_blocking: Blocking;
    strangers_at_two_phase: TwoPhase;
    strangers_at_yielding: Yielding;
}

/// A policy that panics breaks the promise of the trait. A closure between two waits may panic.
#[test]
fn a_caught_panic_breaks_nothing_while_the_waiter_lives() {
    let barrier = Tree::new(2).unwrap();
    let crossed = together(&barrier, |mut waiter| {
        assert!(waiter.wait().is_ok());
        let caught = catch_unwind(AssertUnwindSafe(|| {
            if waiter.index() == 0 {
                std::panic::resume_unwind(Box::new("caught"));
            }
        }));
        assert_eq!(caught.is_err(), waiter.index() == 0);
        waiter.wait().is_ok()
    });
    assert!(crossed.into_iter().all(Result::unwrap));
}
