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
    let table = include_str!("../machines.rs");
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
        transfer: nothing,
        futex_here: Time::micros(9),
        futex_there: nothing,
    };
    assert_eq!(modern_measured(2, odd).check(), Ok(()));
}

#[test]
fn a_hand_over_takes_as_long_as_it_measured() {
    use crate::memory::{Access, Kind, Line, System};
    let measured = Measured { transfer: Time::nanos(100), ..Measured::default() };
    let mut system = System::new(&modern_measured(2, measured));
    let mut at = |nanos, processor, kind| {
        system.access(Access { at: Time::nanos(nanos), processor, line: Line(0), kind }).at
    };
    at(0, 0, Kind::Read);
    at(0, 1, Kind::Read);
    at(1_000, 0, Kind::Write);
    assert_eq!(at(1_000, 1, Kind::Read), Time::nanos(1_100));
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
