use super::*;
use crate::Time;

#[test]
fn every_machine_is_possible() {
    for name in NAMES {
        let machine = by_name(name).unwrap();
        assert_eq!(machine.check(), Ok(()));
        assert_eq!(machine.name, name);
    }
}

#[test]
fn a_name_like_none_gets_the_list() {
    let said = by_name("cray").unwrap_err().to_string();
    assert!(said.ends_with(
        "there are symmetry-a, symmetry-b, challenge, firefly, makbilan, modern, modern-2s"
    ));
}

#[test]
fn any_number_of_processors_up_to_the_limit_is_possible() {
    for processors in [1, 2, 63, 64, 65, 1_024] {
        for machine in [symmetry_a(processors), symmetry_b(processors), modern(processors)] {
            assert_eq!(machine.check(), Ok(()));
        }
    }
    assert!(symmetry_a(1_025).check().is_err());
}

#[test]
fn the_table_says_what_the_machines_are() {
    let table = include_str!("mod.rs");
    for name in NAMES {
        let machine = by_name(name).unwrap();
        let scheduling = &machine.scheduling;
        let switch = scheduling.park + scheduling.switch + scheduling.wakeup;
        // To the microsecond; only the measured one has a fraction.
        let switch = format!(" {} us |", (switch.as_nanos() + 500) / 1_000);
        let row =
            table.lines().find(|line| line.starts_with(&format!("//! | `{name}` |"))).unwrap();
        let processors = format!("| {} |", machine.processors);
        let quantum = format!("| {} |", scheduling.quantum);
        for cell in [processors, switch, quantum] {
            assert!(row.contains(&cell), "{row} does not have {cell}");
        }
    }
}

#[test]
fn measurements_that_contradict_one_another_give_a_machine() {
    let nothing = Time::picos(1);
    let odd = Measured {
        load: Time::ZERO,
        swap: nothing,
        fetch: nothing,
        upgrade: Time::ZERO,
        migrates: false,
        pause: Time::ZERO,
        switch: Time::micros(9),
        round_trip: nothing,
        wake: Time::ZERO,
        wakeup: Time::ZERO,
    };
    assert_eq!(modern_measured(2, odd).check(), Ok(()));
}

#[test]
fn accesses_take_as_long_as_they_measured() {
    use crate::memory::{Access, Kind, Line, System};
    let measured = Measured {
        load: Time::nanos(1),
        swap: Time::nanos(3),
        fetch: Time::nanos(100),
        upgrade: Time::nanos(90),
        ..Measured::default()
    };
    let mut system = System::new(&modern_measured(2, measured));
    let mut took = |nanos, processor, kind| {
        let at = Time::nanos(nanos);
        (system.access(Access { at, processor, line: Line(0), kind }).at - at).as_nanos()
    };
    took(0, 0, Kind::Exchange);
    assert_eq!(took(1_000, 0, Kind::Read), 1);
    assert_eq!(took(2_000, 0, Kind::Exchange), 3);
    // The line migrates.
    assert_eq!(took(3_000, 1, Kind::Read), 100);
    assert_eq!(took(4_000, 1, Kind::Exchange), 3);
    // No processor writes it between two reads.
    took(5_000, 0, Kind::Read);
    took(6_000, 1, Kind::Read);
    assert_eq!(took(7_000, 0, Kind::Exchange), 90);
}

#[test]
fn a_lock_of_the_symmetry_takes_what_table_3_1_says() {
    use crate::memory::{Access, Kind, Line, System};
    let mut system = System::new(&symmetry_a(20));
    let mut exchange =
        |at| system.access(Access { at, processor: 0, line: Line(0), kind: Kind::Exchange }).at;
    let taken = exchange(Time::ZERO);
    assert_eq!(exchange(taken), Time::nanos(5_600));
}
