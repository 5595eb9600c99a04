//! Random cells of spin locks: all of ours and those of others, in the loads of mutexes.
//!
//! All of ours take part and not the default alone, because each is made for another situation.

use stanchion_formulas::Random;
use stanchion_study_locks::contender::{Contender, Raw, Shared};

use super::load::Load;
use super::{Drawn, Entrant, Family, Limits, locks};
use crate::contestants::Role;
use crate::race::{self, Figures, Race};
use crate::turns::Turns;
use crate::waits::Waits;

/// Spin locks.
pub(super) const FAMILY: Family = Family {
    name: "spinlocks",
    operations: "acquisitions",
    limits: Limits { mean: None, p90: None, worst: None, processor_time: None },
    waits_of: Some("spin"),
    ours_enter: true,
    entrants,
    draw,
};

/// A spin lock and its race.
struct SpinLock {
    /// The name in tables.
    name: &'static str,
    /// Its part in the judgement.
    role: Role,
    /// Runs a race on a new lock of this type.
    race: fn(&Race<'_>) -> (Figures, Waits),
}

/// The lock that our guide names for short sections.
const DEFAULT: &str = "TestAndSet<Ethernet>";

const fn peer<L: Contender>(name: &'static str) -> SpinLock {
    SpinLock { name, role: Role::Peer, race: race::run::<L> }
}

/// Expands to all spin locks: ours, of the table, and those given.
macro_rules! spin_locks {
    ([$($others:tt)*] $({
        $test:ident: $lock:ty,
        command: $command:literal,
        name: $name:literal,
        $($rest:tt)*
    })+) => {
        vec![
            $(SpinLock { name: $name, role: Role::Policy, race: race::run::<Raw<$lock>> },)+
            $($others)*
        ]
    };
}

/// Returns all spin locks, the default first.
fn all() -> Vec<SpinLock> {
    let mut all = stanchion_spin::__locks!(spin_locks [
        peer::<peer_spin::mutex::SpinMutex<Shared>>("spin"),
        peer::<peer_spin::mutex::TicketMutex<Shared>>("spin TicketMutex"),
        peer::<mcslock::barging::spins::Mutex<Shared>>("mcslock barging"),
        peer::<mcslock::raw::spins::Mutex<Shared>>("mcslock raw"),
    ]);
    for lock in &mut all {
        if lock.name == DEFAULT {
            lock.role = Role::Default;
        }
    }
    all.sort_by_key(|lock| lock.role != Role::Default);
    all
}

fn entrants() -> Vec<Entrant> {
    let entrant = |lock: SpinLock| Entrant { name: lock.name, role: lock.role, sleeps: false };
    all().into_iter().map(entrant).collect()
}

fn draw(random: &mut Random, processors: usize) -> Drawn {
    let load = Load::draw(random, processors);
    let turns = Turns::draw(load.shape, 0.0, random);
    let all = all();
    Drawn {
        words: load.words(),
        data: load.data(),
        hogs: load.hogs,
        race: Box::new(move |entrant, stage| {
            Some((all[entrant].race)(&locks::race(&load, &turns, stage)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_first_and_names_are_distinct() {
        let all = entrants();
        assert_eq!((all[0].name, all[0].role), (DEFAULT, Role::Default));
        assert!(all.iter().any(|one| Some(one.name) == FAMILY.waits_of));
        let names: std::collections::BTreeSet<_> = all.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn cells_are_the_same_in_all_releases() {
        let words = |index| {
            let mut random = super::super::draw::source("spinlocks", 1989, index);
            draw(&mut random, 2).words.replace('\u{a0}', " ")
        };
        assert_eq!([0, 1].map(words), FIRST);
    }

    /// The first cells of the usual seed.
    const FIRST: [&str; 2] = [
        "8 threads, sections of 70.6 µs, 561 µs outside, exponential, pinned",
        "13 threads, sections of 121 ns, 152 ns outside, exponential, 2 busy processes, pinned",
    ];
}
