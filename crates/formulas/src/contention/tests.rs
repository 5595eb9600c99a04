use super::*;

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-8 * right.abs()
}

/// In µs: the local free list of the paper, nearly.
fn central(user: Demand) -> Workload {
    Workload {
        user,
        outside: Demand { bus: 2.75, cache: 37.25 },
        locks: vec![Lock::central(2.0, Demand { bus: 1.125, cache: 8.875 })],
        spinning: 0.6,
    }
}

fn local(user: Demand, processors: u32) -> Workload {
    let work = central(user);
    let lock = work.locks[0];
    Workload { locks: vec![Lock { copies: processors, ..lock }], ..work }
}

#[test]
fn one_processor_takes_its_demands() {
    let user = Demand::with_share(300.0, 0.05);
    let alone = solve(&central(user), 1).unwrap();
    assert!(close(alone.cycle, 360.0));
    assert_eq!((alone.bus_response, alone.speed, alone.waiting), (1.0, 1.0, 0.0));
    assert!(close(alone.bus_utilization, 20.0 / 360.0));
    assert_eq!(alone.bus_spinning, 0.0);
    assert!(close(alone.busiest_lock, 20.0 / 360.0));
}

/// Without a bus the high level is the whole model: a machine repairman. Without locks the low
/// level is.
#[test]
fn each_level_alone_is_a_network() {
    let no_bus = Workload {
        user: Demand { bus: 0.0, cache: 90.0 },
        outside: Demand::NONE,
        locks: vec![Lock::central(2.0, Demand { bus: 0.0, cache: 5.0 })],
        spinning: 0.0,
    };
    let solved = solve(&no_bus, 12).unwrap();
    let network = mva::exact(&[Centre::queueing(10.0), Centre::delay(90.0)], 12).unwrap();
    assert!(close(solved.throughput, network.throughput));
    assert!(close(solved.waiting, 1.0 - 100.0 / network.cycle));
    assert_eq!(solved.bus_response, 1.0);

    let user = Demand { bus: 10.0, cache: 90.0 };
    let no_locks = Workload { user, outside: Demand::NONE, locks: Vec::new(), spinning: 1.0 };
    let solved = solve(&no_locks, 12).unwrap();
    assert!(close(solved.throughput, network.throughput));
    assert!(close(solved.cycle, time_on_copies(user, 12).unwrap()));
    assert!(close(solved.bus_response, 1.0 + network.centres[0].found));
    assert!(close(solved.speed, 100.0 / network.cycle));
    assert_eq!((solved.waiting, solved.busiest_lock), (0.0, 0.0));
}

/// If the levels agree, the bus is as busy as the threads that go through the locks make it, and
/// the low level has their throughput.
#[test]
fn both_levels_have_one_throughput() {
    for processors in [2, 20, 60, 90, 200] {
        for spinning in [0.0, 0.6, 2.0, f64::INFINITY] {
            let work = Workload { spinning, ..central(Demand::with_share(2_000.0, 0.01)) };
            let solved = solve(&work, processors).unwrap();
            let bus = solved.bus_utilization / solved.throughput;
            // Everything that is neither bus service nor queueing for it.
            let queueing = (1.0 - solved.speed) * solved.cycle;
            let network = [Centre::queueing(bus), Centre::delay(solved.cycle - bus - queueing)];
            let low = mva::exact(&network, processors).unwrap();
            assert!(close(low.throughput, solved.throughput), "{processors} {spinning} {solved:?}");
            assert!(solved.bus_utilization <= 1.0 + 1e-9);
        }
    }
}

/// The paper's section 5.2: one queueing centre for each lock; equal locks may be given as copies
/// or one by one.
#[test]
fn copies_are_locks() {
    let section = Demand { bus: 1.0, cache: 9.0 };
    let together = Workload {
        user: Demand::with_share(50.0, 0.05),
        outside: Demand::with_share(40.0, 0.1),
        locks: vec![Lock::spread(3.0, section, 3)],
        spinning: 1.0,
    };
    let apart = Workload { locks: vec![Lock::central(1.0, section); 3], ..together.clone() };
    let (together, apart) = (solve(&together, 16).unwrap(), solve(&apart, 16).unwrap());
    assert!(close(together.throughput, apart.throughput));
    assert!(close(together.waiting, apart.waiting));
    assert!(close(together.busiest_lock, apart.busiest_lock));
}

/// A saturated lock passes one section after the other: with no bus in it, exactly 1/S.
#[test]
fn a_full_lock_sets_the_rate() {
    let work = Workload {
        user: Demand { bus: 0.0, cache: 20.0 },
        outside: Demand::NONE,
        locks: vec![Lock::central(1.0, Demand { bus: 0.0, cache: 10.0 })],
        spinning: 0.0,
    };
    let solved = solve(&work, 40).unwrap();
    assert!(close(solved.throughput, 0.1) && close(solved.busiest_lock, 1.0));
    assert!((solved.waiting - 370.0 / 400.0).abs() < 1e-6);
}

/// Spinning makes the section that is waited for longer (section 4): more of it, less throughput,
/// down to what full-time bus use leaves.
#[test]
fn spinning_slows_the_holder() {
    let rate = |spinning: f64| {
        let work = Workload { spinning, ..central(Demand::NONE) };
        solve(&work, 20).unwrap().throughput
    };
    let rates = [0.0, 0.2, 0.6, 1.0, f64::INFINITY].map(rate);
    assert!(rates.is_sorted_by(|left, right| left > right), "{rates:?}");
    // All twenty are at the bus all the time: the holder's accesses take nearly 20 times as long.
    let section = 8.875 + 20.0 * 1.125;
    assert!((rates[4] * 2.0 * section - 1.0).abs() < 0.05, "{rates:?}");
    // Local ready queues are not harmed by how processors spin: hardly any does.
    let spread = |spinning: f64| {
        let work = Workload { spinning, ..local(Demand::with_share(200.0, 0.01), 20) };
        solve(&work, 20).unwrap().throughput
    };
    assert!(spread(0.6) > 0.99 * spread(0.0));
}

/// At 80 processors this one swings if the paper's steps are taken alone: between a bus response of
/// about 3 and one of about 50.
#[test]
fn what_swings_is_settled_too() {
    let user = Demand::with_share(2_000.0, 0.005);
    let work = Workload {
        outside: Demand { bus: 5.5, cache: 34.5 },
        locks: vec![Lock::central(2.0, Demand { bus: 2.25, cache: 7.75 })],
        spinning: 1.0,
        ..central(user)
    };
    let mut at = 1.0;
    let mut last = [0.0; 2];
    for step in 0..2_000 {
        at = pass(&work, 80, at).unwrap().response;
        last[step % 2] = at;
    }
    assert!((last[0] - last[1]).abs() > 1.0, "the paper's steps settle at {at}: {last:?}");
    let solved = solve(&work, 80).unwrap();
    let again = pass(&work, 80, solved.bus_response).unwrap();
    assert!(close(again.response, solved.bus_response) && solved.steps < 150, "{solved:?}");
}

#[test]
fn what_is_no_workload_is_refused() {
    let work = central(Demand::NONE);
    let refused = |work: Workload| solve(&work, 4).unwrap_err();
    assert_eq!(solve(&work, 0), Err(MvaError::NoCustomers { class: 0 }.into()));
    assert!(solve(&work, 4_096).is_ok());
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let demand = Demand { bus: bad, cache: 1.0 };
        let text = refused(Workload { user: demand, ..work.clone() }).to_string();
        assert!(text.starts_with("user bus time = "), "{text}");
        let text = refused(Workload { outside: demand, ..work.clone() }).to_string();
        assert!(text.starts_with("bus time outside sections = "), "{text}");
        let locks = vec![Lock::central(1.0, Demand { bus: 1.0, cache: bad })];
        let text = refused(Workload { locks, ..work.clone() }).to_string();
        assert!(text.starts_with("cache time of a section = "), "{text}");
        let locks = vec![work.locks[0], Lock { visits: bad, ..work.locks[0] }];
        let text = refused(Workload { locks, ..work.clone() }).to_string();
        assert!(text.starts_with("a thread visits lock number 1 "), "{text}");
    }
    let locks = vec![Lock { copies: 0, ..work.locks[0] }];
    assert_eq!(refused(Workload { locks, ..work.clone() }), ContentionError::NoCopies { lock: 0 });
    assert_eq!(
        refused(Workload { spinning: -0.5, ..work }),
        ContentionError::Spinning { spinning: -0.5 }
    );
    let nothing = Workload {
        user: Demand::NONE,
        outside: Demand::NONE,
        locks: vec![Lock::central(1.0, Demand::NONE)],
        spinning: 1.0,
    };
    assert_eq!(refused(nothing), MvaError::NoDemand { class: 0 }.into());
}

#[test]
fn fits_find_what_went_in() {
    for bus in [0.0, 0.05, 1.7, 9.0, 10.0] {
        let section = Demand { bus, cache: 10.0 - bus };
        let measured: Vec<(u32, f64)> =
            [1, 2, 4, 8, 16].map(|p| (p, time_on_copies(section, p).unwrap())).into();
        let fit = fit_bus_demand(&measured).unwrap();
        assert!((fit.demand.bus - bus).abs() < 1e-6, "{bus}: {fit:?}");
        assert!(close(fit.demand.alone(), 10.0) && fit.worst < 1e-6);
    }
    // Noise of 1 % moves the answer little, and shows.
    let exact = Demand { bus: 2.0, cache: 8.0 };
    let noisy: Vec<(u32, f64)> = [(1, 0.99), (1, 1.01), (4, 1.01), (8, 0.99), (16, 1.01)]
        .map(|(p, noise)| (p, noise * time_on_copies(exact, p).unwrap()))
        .into();
    let fit = fit_bus_demand(&noisy).unwrap();
    assert!((fit.demand.bus / 2.0 - 1.0).abs() < 0.02, "{fit:?}");
    assert!((0.005..0.03).contains(&fit.worst), "{fit:?}");
}

#[test]
fn fits_of_spinning_find_what_went_in() {
    let section = Demand { bus: 2.0, cache: 8.0 };
    for spinning in [0.1, 0.8, 1.5] {
        let measured: Vec<(u32, f64)> = [1, 2, 4, 8]
            .map(|q| (q, time_beside_spinners(section, 3, q, spinning).unwrap()))
            .into();
        let fit = fit_spinning(section, 3, &measured).unwrap();
        assert!((fit.each / spinning - 1.0).abs() < 1e-6 && fit.worst < 1e-6, "{fit:?}");
    }
    // Spinners with a demand that grows with their number are seen not to be linear.
    let cascade: Vec<(u32, f64)> = [1, 2, 4, 8]
        .map(|q| (q, time_beside_spinners(section, 3, q, 0.1 * f64::from(q)).unwrap()))
        .into();
    assert!(fit_spinning(section, 3, &cascade).unwrap().worst > 0.3);
    // No slower than without any: nothing.
    let quiet = time_on_copies(section, 4).unwrap();
    let fit = fit_spinning(section, 3, &[(5, 0.99 * quiet)]).unwrap();
    assert_eq!((fit.each, fit.worst), (0.0, 0.0));
}

#[test]
fn spinners_can_slow_a_section_so_much_and_no_more() {
    let section = Demand { bus: 2.0, cache: 8.0 };
    let times = [0.0, 0.5, 2.0, 20.0, f64::INFINITY]
        .map(|spinning| time_beside_spinners(section, 3, 6, spinning).unwrap());
    assert!(times.is_sorted(), "{times:?}");
    // All six always at the bus, before each of the runner's accesses; the three others some of the
    // time.
    let most = times[4];
    assert!((8.0 + 2.0 * 7.0..=8.0 + 2.0 * 10.0).contains(&most), "{most}");
    let refused = fit_spinning(section, 3, &[(6, 1.01 * most)]).unwrap_err();
    assert!(matches!(refused, ContentionError::TooSlow { spinners: 6, .. }), "{refused}");
    assert_eq!(time_beside_spinners(section, 0, 0, 1.0), Ok(10.0));
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    use ContentionError::{Measured, NoBusDemand, NoneAlone, NoneTogether};
    assert_eq!(fit_bus_demand(&[]), Err(NoneAlone));
    assert_eq!(fit_bus_demand(&[(2, 5.0)]), Err(NoneAlone));
    assert_eq!(fit_bus_demand(&[(1, 5.0)]), Err(NoneTogether));
    for (processors, time) in [(0, 5.0), (2, 0.0), (2, -1.0), (2, f64::INFINITY)] {
        let refused = Measured { processors, time };
        assert_eq!(fit_bus_demand(&[(1, 5.0), (processors, time)]), Err(refused));
        let section = Demand { bus: 1.0, cache: 4.0 };
        assert_eq!(fit_spinning(section, 1, &[(processors, time)]), Err(refused));
        assert_eq!(fit_spinning(section, 1, &[]), Err(NoneTogether));
    }
    let still = Demand { bus: 0.0, cache: 5.0 };
    assert_eq!(fit_spinning(still, 1, &[(1, 5.0)]), Err(NoBusDemand));
}
