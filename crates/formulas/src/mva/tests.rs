use super::*;

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * right.abs()
}

fn near(here: &[f64], printed: &[f64], digit: f64) {
    assert_eq!(here.len(), printed.len());
    for (here, printed) in here.iter().zip(printed) {
        assert!((here - printed).abs() <= digit, "{here} is printed as {printed}");
    }
}

fn queues(solution: &Solution) -> Vec<f64> {
    solution.centres.iter().map(|station| station.queue).collect()
}

fn residences(solution: &Solution) -> Vec<f64> {
    solution.centres.iter().map(|station| station.residence).collect()
}

/// N machines that run for Z on average, and one repairman with a time of D: M/M/1//N. By balance
/// of the states, the repairman idles with probability 1 / Σ N!/(N-i)!·(D/Z)ⁱ.
#[test]
fn the_machine_repairman() {
    for (machines, running, repair) in
        [(1, 5.0, 1.0), (4, 5.0, 1.0), (20, 9.0, 1.0), (30, 2.0, 7.0)]
    {
        let (mut term, mut sum) = (1.0, 1.0);
        for state in 0..machines {
            term *= f64::from(machines - state) * repair / running;
            sum += term;
        }
        let busy = 1.0 - 1.0 / sum;
        let solved = exact(&[Centre::queueing(repair), Centre::delay(running)], machines).unwrap();
        assert!(close(solved.centres[0].utilization, busy), "{machines} machines");
        assert!(close(solved.throughput, busy / repair));
        // Little's law for the whole, with the machines that run.
        let down = f64::from(machines) - running * busy / repair;
        assert!(close(solved.centres[0].queue, down), "{machines} machines");
    }
}

/// K equal queueing centres: each holds N/K, and throughput is N / (D·(N + K - 1)).
#[test]
fn a_balanced_network() {
    for (centres, customers) in [(1, 1), (1, 7), (3, 1), (3, 10), (20, 20)] {
        let solved = exact(&vec![Centre::queueing(2.5); centres], customers).unwrap();
        let (k, n) = (centres as f64, f64::from(customers));
        assert!(close(solved.throughput, n / (2.5 * (n + k - 1.0))));
        assert!(queues(&solved).iter().all(|&queue| close(queue, n / k)));
    }
}

/// Jain: The Art of Computer Systems Performance Analysis, 1991, example 34.2: a timesharing system
/// with a processor and two discs, and 20 users with a think time of 4 s.
#[test]
fn jains_timesharing_system() {
    let (visits, services) = ([16.0, 10.0, 5.0], [0.125, 0.3, 0.2]);
    let mut network: Vec<Centre> =
        visits.iter().zip(services).map(|(v, s)| Centre::queueing(v * s)).collect();
    network.push(Centre::delay(4.0));
    let solved = exact(&network, 20).unwrap();
    near(&queues(&solved)[..3], &[1.991, 16.177, 0.500], 1e-3);
    let responses: Vec<f64> =
        residences(&solved).iter().zip(visits).map(|(residence, v)| residence / v).collect();
    near(&responses, &[0.373, 4.854, 0.300], 1e-3);
}

/// Bolch, Greiner, de Meer, Trivedi: Queueing Networks and Markov Chains, 1998, example 8.3: a
/// processor and three devices, 6 jobs.
#[test]
fn bolchs_central_server() {
    let network = [0.02, 0.08, 0.08, 0.06].map(Centre::queueing);
    let solved = exact(&network, 6).unwrap();
    near(&[solved.throughput], &[9.920], 1e-3);
    near(&queues(&solved), &[0.244, 2.261, 2.261, 1.234], 1e-3);
    let busy: Vec<f64> = solved.centres.iter().map(|station| station.utilization).collect();
    near(&busy, &[0.198, 0.794, 0.794, 0.595], 1e-3);
}

/// Lazowska, Zahorjan, Graham, Sevcik: Quantitative System Performance, 1984, page 142: two classes
/// of one customer, a processor and a disc, in fractions.
#[test]
fn lazowskas_two_classes() {
    let classes = [
        Class { customers: 1, demands: &[1.0, 3.0] },
        Class { customers: 1, demands: &[2.0, 4.0] },
    ];
    let solved = exact_classes(&[Kind::Queueing; 2], &classes).unwrap();
    near(&residences(&solved[0]), &[4.0 / 3.0, 5.0], 1e-12);
    near(&residences(&solved[1]), &[5.0 / 2.0, 7.0], 1e-12);
    near(&queues(&solved[0]), &[4.0 / 19.0, 15.0 / 19.0], 1e-12);
    near(&queues(&solved[1]), &[5.0 / 19.0, 14.0 / 19.0], 1e-12);
    near(&[solved[0].throughput, solved[1].throughput], &[3.0 / 19.0, 2.0 / 19.0], 1e-12);
}

/// Schwetman: Implementing the mean value algorithm for the solution of queueing network models,
/// Purdue CSD-TR-355, 1982, table 5: 15 terminals of one kind, 5 of another, one processor.
#[test]
fn schwetmans_terminals() {
    let classes = [
        Class { customers: 15, demands: &[1.0, 0.025] },
        Class { customers: 5, demands: &[15.0, 0.5] },
    ];
    let solved = exact_classes(&[Kind::Delay, Kind::Queueing], &classes).unwrap();
    near(&[solved[0].throughput], &[14.3], 0.05);
    near(&[solved[1].throughput], &[0.314], 1e-3);
    let processor: Vec<Station> = solved.iter().map(|class| class.centres[1]).collect();
    near(&[processor[0].residence, processor[1].residence], &[0.047, 0.934], 1e-3);
    near(&[processor[0].queue, processor[1].queue], &[0.677, 0.293], 1e-3);
    near(&[processor[0].utilization, processor[1].utilization], &[0.358, 0.157], 1e-3);
}

/// Bolch and others, example 9.6: two centres with demands 9.2 and 8, and 20 customers with a think
/// time of 120.
#[test]
fn bolchs_bounds() {
    let network = [Centre::queueing(9.2), Centre::queueing(8.0), Centre::delay(120.0)];
    let (_, most) = throughput_bounds(&network, 20).unwrap();
    near(&[most], &[0.109], 1e-3);
    assert_eq!(throughput_bounds(&[Centre::delay(4.0)], 20).unwrap(), (5.0, 5.0));
}

#[test]
fn customers_of_two_classes_that_are_alike_are_of_one() {
    let demands = [1.5, 4.0, 0.25];
    let kinds = [Kind::Queueing, Kind::Delay, Kind::Queueing];
    let centres: Vec<Centre> =
        kinds.iter().zip(demands).map(|(&kind, demand)| Centre { kind, demand }).collect();
    let one = exact(&centres, 9).unwrap();
    let classes = [2, 4, 3].map(|customers| Class { customers, demands: &demands });
    let several = exact_classes(&kinds, &classes).unwrap();
    for (class, solution) in classes.iter().zip(&several) {
        let share = f64::from(class.customers) / 9.0;
        assert!(close(solution.cycle, one.cycle));
        assert!(close(solution.throughput, share * one.throughput));
        for (here, there) in solution.centres.iter().zip(&one.centres) {
            assert!(close(here.residence, there.residence) && close(here.found, there.found));
            assert!(close(here.queue, share * there.queue));
        }
    }
}

#[test]
fn copies_are_centres() {
    let (lock, rest) = (Centre::queueing(3.0), Centre::delay(40.0));
    let apart = exact(&[lock, lock, rest, lock], 12).unwrap();
    let together = exact_with_copies(&[(lock, 3), (rest, 1)], 12).unwrap();
    assert!(close(apart.throughput, together.throughput));
    assert!(close(apart.centres[3].queue, together.centres[0].queue));
}

#[test]
fn what_is_not_a_network_is_refused() {
    let bus = Centre::queueing(1.0);
    assert_eq!(exact(&[bus], 0), Err(MvaError::NoCustomers { class: 0 }));
    let customers = MOST_CUSTOMERS + 1;
    assert_eq!(exact(&[bus], customers), Err(MvaError::TooManyCustomers { customers }));
    assert_eq!(exact(&[], 1), Err(MvaError::NoDemand { class: 0 }));
    assert_eq!(exact(&[Centre::delay(0.0)], 1), Err(MvaError::NoDemand { class: 0 }));
    for demand in [-1.0, f64::INFINITY, 1e-101, 1e101] {
        let refused = Err(MvaError::Demand { class: 0, centre: 1, demand });
        assert_eq!(exact(&[bus, Centre::delay(demand)], 1), refused);
        assert_eq!(
            throughput_bounds(&[bus, Centre::delay(demand)], 1),
            refused.map(|_| (0.0, 0.0))
        );
    }
    assert!(exact(&[Centre::queueing(f64::NAN)], 1).is_err());

    let sound = Class { customers: 1, demands: &[1.0] };
    let refused = |class| exact_classes(&[Kind::Queueing], &[sound, class]).unwrap_err();
    assert_eq!(refused(Class { customers: 0, ..sound }), MvaError::NoCustomers { class: 1 });
    assert_eq!(
        refused(Class { customers: 1, demands: &[1.0, 2.0] }),
        MvaError::Demands { class: 1, demands: 2, centres: 1 }
    );
    assert_eq!(
        refused(Class { customers: 1, demands: &[-2.0] }),
        MvaError::Demand { class: 1, centre: 0, demand: -2.0 }
    );
    let crowd = Class { customers: 3_000, ..sound };
    assert_eq!(
        exact_classes(&[Kind::Queueing], &[crowd, crowd]),
        Err(MvaError::TooManyStates { classes: 2 })
    );
}

#[test]
fn the_most_and_the_least_stay_numbers() {
    for demand in [LEAST_DEMAND, MOST_DEMAND] {
        for other in [LEAST_DEMAND, MOST_DEMAND] {
            let solved = exact(&[Centre::queueing(demand), Centre::delay(other)], 10_000).unwrap();
            assert!(solved.throughput.is_finite() && solved.throughput > 0.0);
            assert!(queues(&solved).iter().all(|queue| (0.0..=10_000.1).contains(queue)));
        }
    }
}
