//! The contestants: our policies, from the table of `stanchion-competitive`, and the others, a line
//! each.
//!
//! One of our policies is not here. `OptimalOnline` needs the distribution of a lock's waits
//! beforehand, and without one it is `FixedSpin`.

use stanchion_competitive::policy::{
    Adaptive, LastThreeSamples, OptimalOnlineApproximation, RandomWalk,
};
use stanchion_competitive::{Policy, RawPolicyMutex};

use super::race::{self, Figures, Race};
use super::waits::Waits;
use stanchion_study_locks::contender::{Contender, Raw, Shared};

/// A mutex and its race, compiled for it.
pub(crate) struct Contestant {
    /// The text by which a user chooses it, and its label in tables.
    pub(crate) name: &'static str,
    /// Its part in the judgement.
    pub(crate) role: Role,
    /// A waiter may give its processor away until it is woken.
    pub(crate) blocks: bool,
    /// It asks whether the holder is on a processor.
    pub(crate) sees_holder: bool,
    /// Runs a race on a new mutex of this type.
    pub(crate) race: fn(&Race<'_>) -> (Figures, Waits),
}

/// The part of a contestant in the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ours with the policy that a user gets without naming one. This contestant is judged.
    Default,
    /// Ours with another policy.
    Policy,
    /// Ours with another step or limit of an adaptive policy; takes part if asked for.
    Step,
    /// A mutex of another crate.
    Peer,
}

const fn peer<L: Contender>(name: &'static str, blocks: bool) -> Contestant {
    Contestant { name, role: Role::Peer, blocks, sees_holder: false, race: race::run::<L> }
}

const BLOCKS: bool = true;
const SPINS: bool = false;

const fn ours<P: Policy + 'static>(name: &'static str, role: Role) -> Contestant {
    let race = race::run::<Raw<RawPolicyMutex<P>>>;
    Contestant { name, role, blocks: true, sees_holder: false, race }
}

/// Makes a contestant of ours with a policy that asks whether the holder is on a processor.
const fn seeing<P: Policy + 'static>(name: &'static str, role: Role) -> Contestant {
    Contestant { sees_holder: true, ..ours::<P>(name, role) }
}

/// Makes a contestant of ours with a policy by which no waiter ever sleeps.
const fn spinning<P: Policy + 'static>(name: &'static str, role: Role) -> Contestant {
    Contestant { blocks: SPINS, ..ours::<P>(name, role) }
}

/// Expands to the contestants: the default, the other policies of the table, and those given.
macro_rules! contestants {
    ([$($others:tt)*] $({
        $test:ident: $policy:ty,
        name: $name:literal,
        public: $public:tt,
        bytes: $bytes:literal,
        race: [$($make:ident, $label:literal)?],
        $($rest:tt)*
    })+) => {
        &[
            ours::<Adaptive>("Adaptive", Role::Default),
            $($($make::<$policy>($label, Role::Policy),)?)+
            $($others)*
        ]
    };
}

/// All contestants: ours first.
pub(crate) static CONTESTANTS: &[Contestant] = stanchion_competitive::__policies!(contestants [
    ours::<Adaptive<4>>("Adaptive 4 C", Role::Step),
    ours::<Adaptive<8>>("Adaptive 8 C", Role::Step),
    ours::<Adaptive<32>>("Adaptive 32 C", Role::Step),
    ours::<Adaptive<64>>("Adaptive 64 C", Role::Step),
    ours::<OptimalOnlineApproximation<4>>("OptimalOnlineApproximation 0.04 C", Role::Step),
    ours::<OptimalOnlineApproximation<8>>("OptimalOnlineApproximation 0.08 C", Role::Step),
    ours::<OptimalOnlineApproximation<16>>("OptimalOnlineApproximation 0.16 C", Role::Step),
    ours::<LastThreeSamples<4>>("LastThreeSamples 0.04 C", Role::Step),
    ours::<LastThreeSamples<16>>("LastThreeSamples 0.16 C", Role::Step),
    ours::<LastThreeSamples<32>>("LastThreeSamples 0.32 C", Role::Step),
    ours::<RandomWalk<4>>("RandomWalk 0.04 C", Role::Step),
    ours::<RandomWalk<16>>("RandomWalk 0.16 C", Role::Step),
    ours::<RandomWalk<32>>("RandomWalk 0.32 C", Role::Step),
    peer::<std::sync::Mutex<Shared>>("std", BLOCKS),
    peer::<Raw<parking_lot::RawMutex>>("parking_lot", BLOCKS),
    peer::<usync::Mutex<Shared>>("usync", BLOCKS),
    peer::<peer_spin::mutex::SpinMutex<Shared>>("spin", SPINS),
    peer::<mcslock::barging::spins::Mutex<Shared>>("mcslock barging", SPINS),
]);

/// Returns the contestants that any of `filters` matches, or the filter that matches none. Without
/// filters it returns all but the steps, and with `steps` those too.
///
/// A filter is a name, or else a part of one, or one of the words `ours` (the steps left out unless
/// asked for) and `peers`. Case does not matter.
pub(crate) fn choose(filters: &[String], steps: bool) -> Result<Vec<&'static Contestant>, String> {
    let all: Vec<(&'static str, Role)> =
        CONTESTANTS.iter().map(|contestant| (contestant.name, contestant.role)).collect();
    let chosen = choose_among(&all, filters, |role| steps || role != Role::Step)?;
    let all = CONTESTANTS.iter().zip(chosen);
    Ok(all.filter_map(|(contestant, chosen)| chosen.then_some(contestant)).collect())
}

/// Says for each of `all`, given by name and role, whether any of `filters` matches it. Returns the
/// filter that matches none otherwise. Only those with a role that is `entered` take part without
/// filters, and in `ours`.
pub(crate) fn choose_among(
    all: &[(&'static str, Role)],
    filters: &[String],
    entered: impl Fn(Role) -> bool,
) -> Result<Vec<bool>, String> {
    if filters.is_empty() {
        return Ok(all.iter().map(|(_, role)| entered(*role)).collect());
    }
    let mut chosen = vec![false; all.len()];
    for filter in filters {
        let wanted = filter.to_lowercase();
        let whole = all.iter().any(|(name, _)| name.to_lowercase() == wanted);
        let mut found = false;
        for ((name, role), chosen) in all.iter().zip(&mut chosen) {
            let name = name.to_lowercase();
            let meant = match wanted.as_str() {
                "ours" => *role != Role::Peer && entered(*role),
                "peers" => *role == Role::Peer,
                _ if whole => name == wanted,
                _ => name.contains(&wanted),
            };
            found |= meant;
            *chosen |= meant;
        }
        if !found || wanted.is_empty() {
            return Err(filter.clone());
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::race::Naps;
    use super::super::turns::Turns;
    use super::super::work::Steps;
    use super::*;

    #[test]
    fn each_excludes_is_counted_and_is_timed() {
        let busy = Steps { inside: 50, outside: 50 };
        for contestant in CONTESTANTS {
            let name = contestant.name;
            let race = |millis| {
                (contestant.race)(&Race {
                    threads: 3,
                    pins: &[],
                    turns: &Turns::default(),
                    laps: [busy, Steps { inside: 500, outside: 0 }],
                    phase: Some(Duration::from_millis(2)),
                    naps: Some(Naps { every: 1_000, length: Duration::from_micros(10) }),
                    settle: Duration::from_millis(1),
                    window: Duration::from_millis(millis),
                    timed: Duration::from_millis(millis),
                })
                .0
            };
            // On a busy machine no thread may have run in a short window.
            let figures = [5, 50, 500, 5_000]
                .into_iter()
                .map(race)
                .find(|figures| figures.p50 > 0.0)
                .unwrap_or_else(|| panic!("{name}: no thread had the lock in 5 s"));
            assert!(figures.throughput > 0.0 && figures.throughput.is_finite(), "{name}");
            assert!(figures.cost > 0.0, "{name}");
            assert!((0.3..=1.0).contains(&figures.fairness), "{name}: {figures:?}");
            assert!(figures.p50 > 0.0 && figures.p50 <= figures.p99, "{name}: {figures:?}");
            assert!(figures.p99 <= figures.p999, "{name}: {figures:?}");
            assert!(figures.p999 <= figures.longest, "{name}: {figures:?}");
        }
    }

    #[test]
    fn names_are_distinct_and_found() {
        for (index, contestant) in CONTESTANTS.iter().enumerate() {
            let found = choose(&[contestant.name.to_uppercase()], false).unwrap();
            assert_eq!(found.len(), 1, "{}", contestant.name);
            assert!(std::ptr::eq(found[0], &raw const CONTESTANTS[index]));
        }
        let two: Vec<&str> = choose(&["park".to_owned(), "STD".to_owned()], false)
            .unwrap()
            .iter()
            .map(|c| c.name)
            .collect();
        assert_eq!(two, ["std", "parking_lot"]);
        let count = |filter: &str, steps| choose(&[filter.to_owned()], steps).unwrap().len();
        assert_eq!(count("ours", false) + count("peers", false), choose(&[], false).unwrap().len());
        assert_eq!(count("ours", true) + count("peers", true), CONTESTANTS.len());
        for vain in ["glibc", ""] {
            assert_eq!(choose(&[vain.to_owned()], false).err().as_deref(), Some(vain));
        }
    }
}
