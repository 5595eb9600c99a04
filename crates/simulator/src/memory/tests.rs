//! Traces worked out by hand, one module for each protocol.

use super::*;
use crate::machine::Memory;
use crate::machines;

const LOCK: Line = Line(1);
const COUNT: Line = Line(2);

/// A description with these times and as many processors.
fn system(processors: usize, memory: Memory) -> System {
    let machine = Machine { processors, memory, ..machines::modern(1) };
    machine.check().unwrap();
    System::new(&machine)
}

/// Issues an access at that many nanoseconds.
fn issue(system: &mut System, nanos: u64, processor: usize, kind: Kind, line: Line) -> Done {
    system.access(Access { at: Time::nanos(nanos), processor, line, kind })
}

/// The same, and when it is done.
fn done(system: &mut System, nanos: u64, processor: usize, kind: Kind, line: Line) -> u64 {
    issue(system, nanos, processor, kind, line).at.as_nanos()
}

mod write_through {
    use super::*;
    use crate::machine::WriteThrough;
    use Kind::{Exchange, Read, Write};

    fn small(processors: usize) -> System {
        system(
            processors,
            Memory::WriteThrough(WriteThrough {
                line: 16,
                hit: Time::nanos(1),
                miss: Time::nanos(10),
                miss_bus: Time::nanos(3),
                write: Time::nanos(4),
                write_bus: Time::nanos(2),
                exchange: Time::nanos(20),
                exchange_bus: Time::nanos(5),
            }),
        )
    }

    #[test]
    fn one_lock_and_one_count_by_hand() {
        let mut system = small(2);
        // 0 takes the lock: bus 0..5, done 20, and has the line.
        assert_eq!(done(&mut system, 0, 0, Exchange, LOCK), 20);
        // 1 looks: bus 5..8, done 15; then in its own cache.
        assert_eq!(done(&mut system, 1, 1, Read, LOCK), 15);
        assert_eq!(done(&mut system, 15, 1, Read, LOCK), 16);
        // 0 counts: a miss, bus 20..23, done 30; a hit, done 31; a write through, bus 31..33, done 35.
        assert_eq!(done(&mut system, 20, 0, Read, COUNT), 30);
        assert_eq!(done(&mut system, 30, 0, Read, COUNT), 31);
        assert_eq!(done(&mut system, 31, 0, Write, COUNT), 35);
        // It kept its own copy.
        assert_eq!(done(&mut system, 35, 0, Read, COUNT), 36);
        // 0 releases: bus 36..41, done 56; 1 loses its copy at once.
        let release = issue(&mut system, 36, 0, Exchange, LOCK);
        assert_eq!((release.at.as_nanos(), release.invalidated), (56, 1));
        assert!(!system.holds(1, LOCK));
        // 1 sees it after the bus: 41..44, done 51.
        let look = issue(&mut system, 37, 1, Read, LOCK);
        assert_eq!((look.at.as_nanos(), look.queued.as_nanos(), look.hit), (51, 4, false));
        // Six transactions, no transfer: memory answers always. 5 + 3 + 3 + 2 + 5 + 3.
        let totals = system.totals();
        assert_eq!((totals.all, totals.misses), (9, 6));
        assert_eq!((totals.transfers, totals.invalidations, totals.exchanges), (0, 1, 2));
        assert_eq!((totals.occupied.as_nanos(), totals.queued.as_nanos()), (21, 8));
    }

    #[test]
    fn processors_that_miss_at_once_follow_one_another_on_the_bus() {
        let mut system = small(4);
        let ends: Vec<_> = (0..4).map(|p| done(&mut system, 0, p, Read, LOCK)).collect();
        assert_eq!(ends, [10, 13, 16, 19]);
    }

    #[test]
    fn a_releaser_waits_behind_the_exchanges_of_spinners() {
        let mut system = small(4);
        for spinner in 1..4 {
            done(&mut system, 0, spinner, Exchange, LOCK);
        }
        // The bus is taken until 15.
        assert_eq!(done(&mut system, 0, 0, Exchange, LOCK), 35);
        // And a line that has nothing to do with it waits as well: until 20.
        assert_eq!(done(&mut system, 1, 0, Write, COUNT), 24);
    }

    #[test]
    fn a_write_brings_no_line_in() {
        let mut system = small(2);
        done(&mut system, 0, 0, Write, LOCK);
        assert!(!system.holds(0, LOCK));
    }
}

mod write_back {
    use super::*;
    use crate::machine::WriteBack;
    use Kind::{Exchange, Read, Write};

    fn small(processors: usize) -> System {
        system(
            processors,
            Memory::WriteBack(WriteBack {
                line: 16,
                hit: Time::nanos(1),
                exchange: Time::nanos(2),
                miss: Time::nanos(10),
                miss_bus: Time::nanos(3),
                transfer: Time::nanos(15),
                transfer_bus: Time::nanos(4),
                upgrade: Time::nanos(6),
                upgrade_bus: Time::nanos(1),
            }),
        )
    }

    #[test]
    fn one_lock_by_hand() {
        let mut system = small(2);
        // 0 reads: a miss, bus 0..3, done 10, exclusive; so its write is a hit.
        assert_eq!(done(&mut system, 0, 0, Read, LOCK), 10);
        assert_eq!(done(&mut system, 10, 0, Write, LOCK), 11);
        assert_eq!(done(&mut system, 11, 0, Exchange, LOCK), 14);
        // 1 reads what 0 has written: bus 14..18, done 29; both share it.
        let read = issue(&mut system, 14, 1, Read, LOCK);
        assert_eq!((read.at.as_nanos(), read.transfer, read.invalidated), (29, true, 0));
        assert!(system.holds(0, LOCK) && system.holds(1, LOCK));
        // 0 exchanges: upgrade, bus 30..31, 36, and 2 more.
        let exchange = issue(&mut system, 30, 0, Exchange, LOCK);
        assert_eq!(
            (exchange.at.as_nanos(), exchange.transfer, exchange.invalidated),
            (38, false, 1)
        );
        // 1 writes at 31: bus 31..35, but the line is 0's until 38; 15 from there.
        let write = issue(&mut system, 31, 1, Write, LOCK);
        assert_eq!((write.at.as_nanos(), write.queued.as_nanos(), write.invalidated), (53, 7, 1));
        assert!(!system.holds(0, LOCK));
        // Bus: 3 + 4 + 1 + 4.
        let totals = system.totals();
        assert_eq!((totals.occupied.as_nanos(), totals.transfers), (12, 2));
        system.check();
    }

    #[test]
    fn a_modified_line_goes_from_one_to_the_next() {
        let mut system = small(4);
        // The first fetches it from memory, 10 + 2; each other takes a transfer and the exchange from the one before.
        let ends: Vec<_> = (0..4).map(|p| done(&mut system, 0, p, Exchange, LOCK)).collect();
        assert_eq!(ends, [12, 29, 46, 63]);
        // The bus was free from 3 + 3 * 4 on: another line need not wait for this one.
        assert_eq!(done(&mut system, 16, 0, Read, COUNT), 26);
    }

    #[test]
    fn clean_misses_follow_one_another_on_the_bus() {
        let mut system = small(4);
        let ends: Vec<_> = (0..4).map(|p| done(&mut system, 0, p, Read, LOCK)).collect();
        assert_eq!(ends, [10, 13, 16, 19]);
    }
}
