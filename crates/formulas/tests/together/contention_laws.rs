//! Laws of every program on a bus, over random programs.

use proptest::prelude::*;
use stanchion_formulas::contention::{
    Demand, Lock, Workload, fit_bus_demand, fit_spinning, solve, time_beside_spinners,
    time_on_copies,
};

/// Code of 0.1 to 1000, up to half of it on the bus.
fn demand() -> impl Strategy<Value = Demand> {
    (-1.0_f64..3.0, 0.0_f64..0.5)
        .prop_map(|(size, share)| Demand::with_share(10_f64.powf(size), share))
}

fn lock() -> impl Strategy<Value = Lock> {
    (0.1_f64..4.0, demand(), 1_u32..30)
        .prop_map(|(visits, section, copies)| Lock::spread(visits, section, copies))
}

fn workload() -> impl Strategy<Value = Workload> {
    let spinning = prop_oneof![Just(0.0), 0.01_f64..20.0, Just(f64::INFINITY)];
    (demand(), demand(), proptest::collection::vec(lock(), 1..4), spinning)
        .prop_map(|(user, outside, locks, spinning)| Workload { user, outside, locks, spinning })
}

/// Returns the time of a thread alone.
fn alone(work: &Workload) -> f64 {
    let sections: f64 = work.locks.iter().map(|lock| lock.visits * lock.section.alone()).sum();
    work.user.alone() + work.outside.alone() + sections
}

proptest! {
    #[test]
    fn the_levels_agree_and_no_more_is_done_than_can_be(work in workload(), processors in 1_u32..150) {
        let solved = solve(&work, processors).unwrap();
        let slack = 1.0 + 1e-6;
        prop_assert!(solved.throughput <= f64::from(processors) / alone(&work) * slack);
        prop_assert!(solved.bus_utilization <= slack && solved.busiest_lock <= slack);
        prop_assert!((0.0..=1.0).contains(&solved.waiting) && (0.0..=1.0).contains(&solved.speed));
        prop_assert!((1.0..=f64::from(processors) * slack).contains(&solved.bus_response));
        prop_assert!(solved.bus_spinning <= solved.bus_utilization * slack);
        prop_assert!(solved.steps < 200, "{} steps", solved.steps);
    }

    #[test]
    fn in_any_unit(work in workload(), processors in 1_u32..60, unit in 0.01_f64..100.0) {
        let scale = |demand: Demand| Demand { bus: unit * demand.bus, cache: unit * demand.cache };
        let scaled = Workload {
            user: scale(work.user),
            outside: scale(work.outside),
            locks: work.locks.iter().map(|lock| Lock { section: scale(lock.section), ..*lock }).collect(),
            spinning: unit * work.spinning,
        };
        let (one, other) = (solve(&work, processors).unwrap(), solve(&scaled, processors).unwrap());
        prop_assert!((other.cycle / (unit * one.cycle) - 1.0).abs() < 1e-6);
        prop_assert!((other.bus_response / one.bus_response - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_fit_finds_the_curve_it_is_given(section in demand()) {
        let measured = [1, 3, 9, 20].map(|p| (p, time_on_copies(section, p).unwrap()));
        let fit = fit_bus_demand(&measured).unwrap();
        prop_assert!((fit.demand.bus - section.bus).abs() < 1e-6 * section.alone());
        prop_assert!(fit.worst < 1e-6);
    }

    /// Below saturation: beyond it, more spinning no longer shows.
    #[test]
    fn a_fit_of_spinning_finds_the_line_it_is_given(
        (bus, cache) in (0.5_f64..1.0, 10.0_f64..50.0),
        copies in 1_u32..5,
        share in 0.01_f64..0.1,
    ) {
        let section = Demand { bus, cache };
        let spinning = share * section.alone();
        let mut measured = Vec::new();
        for spinners in [1, 2, 3] {
            measured.push((spinners, time_beside_spinners(section, copies, spinners, spinning).unwrap()));
        }
        let fit = fit_spinning(section, copies, &measured).unwrap();
        prop_assert!((fit.each / spinning - 1.0).abs() < 1e-5, "{} for {spinning}", fit.each);
        prop_assert!(fit.worst < 1e-5);
    }
}
