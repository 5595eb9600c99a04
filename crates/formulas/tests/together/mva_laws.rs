//! Laws that every closed network obeys, over random networks.

use proptest::prelude::*;
use stanchion_formulas::mva::{Centre, Class, Kind, exact, exact_classes, throughput_bounds};

fn centre() -> impl Strategy<Value = Centre> {
    let kind = prop_oneof![Just(Kind::Queueing), Just(Kind::Delay)];
    (kind, 0.01_f64..100.0).prop_map(|(kind, demand)| Centre { kind, demand })
}

fn network() -> impl Strategy<Value = Vec<Centre>> {
    proptest::collection::vec(centre(), 1..8)
}

proptest! {
    /// All customers are somewhere, and each centre holds throughput times residence.
    #[test]
    fn littles_law(network in network(), customers in 1_u32..60) {
        let solved = exact(&network, customers).unwrap();
        let n = f64::from(customers);
        let held: f64 = solved.centres.iter().map(|station| station.queue).sum();
        prop_assert!((held / n - 1.0).abs() < 1e-9);
        let cycle: f64 = solved.centres.iter().map(|station| station.residence).sum();
        prop_assert!((cycle * solved.throughput / n - 1.0).abs() < 1e-9);
        prop_assert!((solved.cycle / cycle - 1.0).abs() < 1e-9);
    }

    #[test]
    fn within_its_bounds(network in network(), customers in 1_u32..60) {
        let solved = exact(&network, customers).unwrap();
        let (least, most) = throughput_bounds(&network, customers).unwrap();
        prop_assert!(least <= solved.throughput * (1.0 + 1e-9));
        prop_assert!(solved.throughput <= most * (1.0 + 1e-9));
        for (centre, station) in network.iter().zip(&solved.centres) {
            prop_assert!(centre.kind == Kind::Delay || station.utilization <= 1.0 + 1e-9);
        }
    }

    /// One more customer never makes fewer cycles, and each customer's own cycle never shorter.
    #[test]
    fn more_customers_do_more_and_wait_longer(network in network(), customers in 1_u32..60) {
        let (fewer, more) = (exact(&network, customers).unwrap(), exact(&network, customers + 1).unwrap());
        prop_assert!(more.throughput >= fewer.throughput * (1.0 - 1e-9));
        prop_assert!(more.cycle >= fewer.cycle * (1.0 - 1e-9));
    }

    #[test]
    fn one_customer_never_waits(network in network()) {
        let solved = exact(&network, 1).unwrap();
        let demand: f64 = network.iter().map(|centre| centre.demand).sum();
        prop_assert!((solved.cycle / demand - 1.0).abs() < 1e-12);
        prop_assert!(solved.centres.iter().all(|station| station.found == 0.0));
    }

    /// The unit of time is the caller's.
    #[test]
    fn in_any_unit(network in network(), customers in 1_u32..30, unit in 0.001_f64..1000.0) {
        let scaled: Vec<Centre> =
            network.iter().map(|centre| Centre { demand: centre.demand * unit, ..*centre }).collect();
        let (one, other) = (exact(&network, customers).unwrap(), exact(&scaled, customers).unwrap());
        prop_assert!((other.cycle / (one.cycle * unit) - 1.0).abs() < 1e-9);
    }

    /// Little's law holds for each class, and a class is slowed by customers of another.
    #[test]
    fn classes_obey_the_same(
        first in proptest::collection::vec(0.01_f64..100.0, 3),
        second in proptest::collection::vec(0.01_f64..100.0, 3),
        (n, m) in (1_u32..12, 1_u32..12),
    ) {
        let kinds = [Kind::Queueing, Kind::Delay, Kind::Queueing];
        let ours = Class { customers: n, demands: &first };
        let theirs = Class { customers: m, demands: &second };
        let solved = exact_classes(&kinds, &[ours, theirs]).unwrap();
        for (class, customers) in solved.iter().zip([n, m]) {
            let held: f64 = class.centres.iter().map(|station| station.queue).sum();
            prop_assert!((held / f64::from(customers) - 1.0).abs() < 1e-9);
        }
        let busy: f64 = solved.iter().map(|class| class.centres[0].utilization).sum();
        prop_assert!(busy <= 1.0 + 1e-9);
        let alone = exact_classes(&kinds, &[ours]).unwrap();
        prop_assert!(solved[0].cycle >= alone[0].cycle * (1.0 - 1e-9));
    }
}
