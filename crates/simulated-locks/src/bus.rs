//! The predictions of section 5's queueing model, to compare with simulated figures.

use stanchion_formulas::contention::{ContentionError, Demand, Lock, Workload, solve};
use stanchion_simulator::Machine;
use stanchion_simulator::machine::Memory;

use stanchion_study_locks::list::Way;

/// Returns the nanoseconds for which a miss occupies the bus, if the machine has one bus.
pub fn miss(machine: &Machine) -> Option<f64> {
    let time = match &machine.memory {
        Memory::WriteThrough(times) => times.miss_bus,
        Memory::WriteBack(times) => times.miss_bus,
        Memory::Update(times) => times.miss_bus,
        Memory::Uncached(_) | Memory::Directory(_) => return None,
    };
    Some(time.as_picos() as f64 / 1e3)
}

/// Returns the model's slowdown of `processors` processors that do nothing but sections under one
/// lock, compared with one processor. It is known for the ways of waiting for which section 5.1
/// gives the demand of the bus: two misses a section with backoff, and the whole bus with the
/// exchange. `alone` is the demand of one processor in each section.
pub fn degraded(
    way: Way,
    alone: Demand,
    processors: usize,
    miss: f64,
) -> Option<Result<f64, ContentionError>> {
    let spinning = match way {
        Way::Exchange => f64::INFINITY,
        Way::Backoff => 2.0 * miss,
        Way::Read | Way::Polling => return None,
    };
    let work = Workload {
        user: Demand::NONE,
        outside: Demand::NONE,
        locks: vec![Lock::central(1.0, alone)],
        spinning,
    };
    Some(solve(&work, processors as u32).map(|found| 1.0 / (found.throughput * alone.alone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_bus_the_lock_is_all_there_is_and_with_one_spinning_slows_it() {
        let off_the_bus = Demand { bus: 0.0, cache: 8.0 };
        let ratio = degraded(Way::Backoff, off_the_bus, 20, 0.3).unwrap().unwrap();
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
        let section = Demand { bus: 1.2, cache: 7.0 };
        let of = |way| degraded(way, section, 20, 0.3).unwrap().unwrap();
        assert!(1.0 < of(Way::Backoff) && of(Way::Backoff) < of(Way::Exchange));
        assert!(degraded(Way::Read, section, 20, 0.3).is_none());
    }
}
