//! Random cells of locks for readers and writers: the loads of mutexes, in which most sections only
//! read.

use serde_json::json;
use stanchion_competitive::{Policy, RawPolicyMutex, RawRwLock, lock_api};
use stanchion_formulas::Random;
use stanchion_study::units::percent;
use stanchion_study_locks::contender::Shared;

use super::load::Load;
use super::locks::race;
use super::{Drawn, Entrant, Family, Limits};
use crate::contestants::Role;
use crate::race::{self, Figures, Held, Race, Subject};
use crate::turns::Turns;
use crate::waits::Waits;

/// Locks for readers and writers.
pub(super) const FAMILY: Family = Family {
    name: "rwlocks",
    operations: "acquisitions",
    limits: Limits { mean: Some(1.03), p90: Some(1.15), worst: Some(1.25), processor_time: None },
    waits_of: Some("parking_lot"),
    ours_enter: false,
    entrants,
    draw,
};

/// The least and the most share of the sections that only read.
const READS: (f64, f64) = (0.5, 0.999);

/// A lock and its race, compiled for it.
struct Contestant {
    /// The name in tables.
    name: &'static str,
    /// Its part in the judgement.
    role: Role,
    /// A waiter may give its processor away until it is woken.
    sleeps: bool,
    /// Runs a race on a new lock of this type.
    race: fn(&Race<'_>) -> (Figures, Waits),
}

const fn contestant<S: Subject>(name: &'static str, role: Role, sleeps: bool) -> Contestant {
    Contestant { name, role, sleeps, race: race::run::<S> }
}

/// Makes a contestant of ours with a policy of its gate.
const fn ours<P: Policy + 'static>(name: &'static str, sleeps: bool) -> Contestant {
    contestant::<Rw<Ours<P>>>(name, Role::Policy, sleeps)
}

/// Says of each way to make a contestant in the table of policies whether its waiters sleep.
macro_rules! sleeps {
    (spinning) => {
        false
    };
    ($other:ident) => {
        true
    };
}

/// Expands to all contestants: the default, the policies of the table, and the peers.
macro_rules! contestants {
    ([] $({
        $test:ident: $policy:ty,
        name: $name:literal,
        public: $public:tt,
        bytes: $bytes:literal,
        race: [$($make:ident, $label:literal)?],
        $($rest:tt)*
    })+) => {
        &[
            contestant::<Rw<lock_api::RwLock<RawRwLock, Shared>>>("RwLock", Role::Default, true),
            $($(ours::<$policy>($label, sleeps!($make)),)?)+
            contestant::<Rw<std::sync::RwLock<Shared>>>("std", Role::Peer, true),
            contestant::<Rw<lock_api::RwLock<parking_lot::RawRwLock, Shared>>>(
                "parking_lot", Role::Peer, true,
            ),
            contestant::<Rw<usync::RwLock<Shared>>>("usync", Role::Peer, true),
            contestant::<Rw<peer_spin::RwLock<Shared>>>("spin", Role::Peer, false),
        ]
    };
}

/// All contestants: ours first.
static CONTESTANTS: &[Contestant] = stanchion_competitive::__policies!(contestants);

/// A lock of ours with a policy of its gate.
type Ours<P> = lock_api::RwLock<RawRwLock<RawPolicyMutex<P>>, Shared>;

/// A lock for readers and writers, as a race takes it.
struct Rw<L>(L);

impl<R: lock_api::RawRwLock + Send + Sync> Subject for Rw<lock_api::RwLock<R, Shared>> {
    fn new() -> Self {
        Self(lock_api::RwLock::new(Shared::default()))
    }

    #[inline(always)]
    fn enter<T>(&self, reads: bool, section: impl FnOnce(Held<'_>) -> T) -> T {
        if reads {
            section(Held::Read(&self.0.read()))
        } else {
            section(Held::Write(&mut self.0.write()))
        }
    }
}

/// Returns the guard of a lock that may be poisoned. No section panics, and the data would be sound
/// if one did.
fn sound<T>(guard: Result<T, std::sync::PoisonError<T>>) -> T {
    guard.unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Implements the interface for a lock with a constructor `new`, with the expression that makes a
/// guard of what its methods return.
macro_rules! subjects {
    ($($lock:ty: $guard:expr;)+) => {$(
        impl Subject for Rw<$lock> {
            fn new() -> Self {
                Self(<$lock>::new(Shared::default()))
            }

            #[inline(always)]
            fn enter<T>(&self, reads: bool, section: impl FnOnce(Held<'_>) -> T) -> T {
                if reads {
                    section(Held::Read(&*$guard(self.0.read())))
                } else {
                    section(Held::Write(&mut *$guard(self.0.write())))
                }
            }
        }
    )+};
}

subjects! {
    std::sync::RwLock<Shared>: sound;
    usync::RwLock<Shared>: std::convert::identity;
    peer_spin::RwLock<Shared>: std::convert::identity;
}

fn entrants() -> Vec<Entrant> {
    let entrant = |one: &Contestant| Entrant { name: one.name, role: one.role, sleeps: one.sleeps };
    CONTESTANTS.iter().map(entrant).collect()
}

fn draw(random: &mut Random, processors: usize) -> Drawn {
    let load = Load::draw(random, processors);
    let reads = READS.0 + (READS.1 - READS.0) * random.unit();
    let turns = Turns::draw(load.shape, reads, random);
    let mut data = load.data();
    data["reads"] = json!(reads);
    Drawn {
        words: format!("{}, {} reads", load.words(), percent(reads)),
        data,
        hogs: load.hogs,
        race: Box::new(move |entrant, stage| {
            Some((CONTESTANTS[entrant].race)(&race(&load, &turns, stage)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::draw::source;
    use super::super::draw::tests::near;
    use super::*;
    use crate::work::Steps;

    #[test]
    fn each_excludes_is_counted_and_is_timed() {
        let turns = Turns::draw(crate::turns::Shape::Constant, 0.9, &mut Random::new(1));
        for contestant in CONTESTANTS {
            let race = |millis| {
                (contestant.race)(&Race {
                    threads: 3,
                    pins: &[],
                    turns: &turns,
                    laps: [Steps { inside: 50, outside: 50 }; 2],
                    phase: None,
                    naps: None,
                    settle: Duration::from_millis(1),
                    window: Duration::from_millis(millis),
                    timed: Duration::from_millis(millis),
                })
            };
            // On a busy machine no thread may have run in a short window.
            let found =
                [5, 50, 500, 5_000].into_iter().map(race).find(|(_, waits)| waits.count() > 0);
            let (figures, waits) =
                found.unwrap_or_else(|| panic!("{} had no turn", contestant.name));
            assert!(figures.throughput > 0.0 && figures.cost > 0.0, "{}", contestant.name);
            assert!(waits.longest() <= figures.longest, "{}", contestant.name);
        }
    }

    #[test]
    fn half_to_nearly_all_sections_read() {
        let reads =
            |index| draw(&mut source("rwlocks", 1, index), 2).data["reads"].as_f64().unwrap();
        let all: Vec<f64> = (0..2_000).map(reads).collect();
        assert!(all.iter().all(|share| (READS.0..=READS.1).contains(share)));
        near(all.iter().sum::<f64>() / 2_000.0, 0.7495);
    }
}
