//! Traces worked out by hand, one module for each protocol.

use super::*;
use crate::machine::Memory;
use crate::machines;
use crate::{Machine, Time};

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
        // 0 counts: a miss, bus 20..23, done 30; a hit, done 31; a write through, bus 31..33, done
        // 35.
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
        // 1 writes at 31: bus 31..35, but the line is on its way to 0 until 36; 15 from there.
        let write = issue(&mut system, 31, 1, Write, LOCK);
        assert_eq!((write.at.as_nanos(), write.queued.as_nanos(), write.invalidated), (51, 5, 1));
        assert!(!system.holds(0, LOCK));
        // Bus: 3 + 4 + 1 + 4.
        let totals = system.totals();
        assert_eq!((totals.occupied.as_nanos(), totals.transfers), (12, 2));
        system.check();
    }

    #[test]
    fn a_modified_line_goes_from_one_to_the_next() {
        let mut system = small(4);
        // The first has it from memory at 10; each other 15 after the one before. All take 2 more.
        let ends: Vec<_> = (0..4).map(|p| done(&mut system, 0, p, Exchange, LOCK)).collect();
        assert_eq!(ends, [12, 27, 42, 57]);
        // The bus was free from 3 + 3 * 4 on: another line need not wait for this one.
        assert_eq!(done(&mut system, 16, 0, Read, COUNT), 26);
    }

    #[test]
    fn an_owner_keeps_its_line_until_the_bus_tells_it() {
        let mut system = small(3);
        done(&mut system, 0, 0, Exchange, LOCK);
        // 2 has the bus from 98 to 101 for another line; 1 asks at 99: bus 101..105, so 0 may write
        // until then, and it gets it at 101 + 15 + 2.
        done(&mut system, 98, 2, Read, COUNT);
        let take = issue(&mut system, 99, 1, Exchange, LOCK);
        assert_eq!((take.at.as_nanos(), take.reaches.as_nanos()), (118, 105));
        assert!(issue(&mut system, 104, 0, Write, LOCK).hit);
        // Too late: bus 105..109, the line is 1's at 116, and 15 from there.
        assert_eq!(done(&mut system, 105, 0, Write, LOCK), 131);
        // 1 was asked by a plain write, which would be seen too early: it has to wait for its turn,
        // 131 + 15.
        assert_eq!(done(&mut system, 106, 1, Write, LOCK), 146);
    }

    #[test]
    fn clean_misses_follow_one_another_on_the_bus() {
        let mut system = small(4);
        let ends: Vec<_> = (0..4).map(|p| done(&mut system, 0, p, Read, LOCK)).collect();
        assert_eq!(ends, [10, 13, 16, 19]);
    }
}

mod update {
    use super::*;
    use crate::machine::Update;
    use Kind::{Exchange, Read, Write};

    fn small(processors: usize) -> System {
        system(
            processors,
            Memory::Update(Update {
                line: 4,
                hit: Time::nanos(1),
                exchange: Time::nanos(2),
                miss: Time::nanos(8),
                miss_bus: Time::nanos(4),
                write: Time::nanos(6),
                write_bus: Time::nanos(3),
            }),
        )
    }

    #[test]
    fn one_lock_by_hand() {
        let mut system = small(3);
        // Processor 0 takes the lock: a miss, bus 0..4, and 8 + 2. No other processor has it, so
        // the next is a hit with 1 + 2.
        assert_eq!(done(&mut system, 0, 0, Exchange, LOCK), 10);
        assert_eq!(done(&mut system, 10, 0, Exchange, LOCK), 13);
        // 1 looks: bus 13..17, from 0's cache, done 21. Then it spins in its own.
        let look = issue(&mut system, 13, 1, Read, LOCK);
        assert_eq!((look.at.as_nanos(), look.transfer), (21, true));
        assert_eq!(done(&mut system, 21, 1, Read, LOCK), 22);
        // 0 releases: a write on the bus, 22..25, done 28. Both copies stay, and 1 sees it without
        // a miss.
        let release = issue(&mut system, 22, 0, Write, LOCK);
        assert_eq!((release.at.as_nanos(), release.invalidated, release.hit), (28, 0, false));
        assert!(issue(&mut system, 23, 1, Read, LOCK).hit);
        // 2 takes it: a miss and a write, bus 25..32, done 25 + 8 + 6 + 2.
        let take = issue(&mut system, 24, 2, Exchange, LOCK);
        assert_eq!((take.at.as_nanos(), take.queued.as_nanos(), take.transfer), (41, 1, true));
        assert!((0..3).all(|processor| system.holds(processor, LOCK)));
        // Bus: 4 + 4 + 3 + 7.
        assert_eq!(system.totals().occupied.as_nanos(), 18);
        assert_eq!((system.totals().misses, system.totals().invalidations), (4, 0));
    }

    #[test]
    fn spinners_on_an_exchange_fill_the_bus_with_updates() {
        let mut system = small(4);
        for processor in 0..4 {
            done(&mut system, 0, processor, Read, LOCK);
        }
        // All have it: each exchange is a write of 3 on the bus, 6 + 2 in all.
        let ends: Vec<_> = (0..4).map(|p| done(&mut system, 100, p, Exchange, LOCK)).collect();
        assert_eq!(ends, [108, 111, 114, 117]);
    }
}

mod uncached {
    use super::*;
    use crate::machine::Uncached;
    use Kind::{Exchange, Read, Write};

    fn small(processors: usize) -> System {
        system(
            processors,
            Memory::Uncached(Uncached {
                line: 64,
                local: Time::nanos(4),
                remote: Time::nanos(20),
                bus: Time::nanos(6),
                module: Time::nanos(3),
                exchange: Time::nanos(5),
            }),
        )
    }

    #[test]
    fn one_lock_by_hand() {
        let mut system = small(3);
        // 0 touches the lock first, so it is at home there: module 0..3, done 4; module 4..12, done
        // 4 + 4 + 5.
        assert_eq!(done(&mut system, 0, 0, Write, LOCK), 4);
        assert_eq!(done(&mut system, 4, 0, Exchange, LOCK), 13);
        // 1 looks at 6: bus 6..12, module 12..15, done 12 + 20.
        let look = issue(&mut system, 6, 1, Read, LOCK);
        assert_eq!((look.at.as_nanos(), look.queued.as_nanos(), look.hit), (32, 6, false));
        // 2 looks at 7: bus 12..18, module 15..18, done 15 + 20.
        assert_eq!(done(&mut system, 7, 2, Read, LOCK), 35);
        // 0 releases at 8 and waits for the module: 18..21, done 22.
        assert_eq!(done(&mut system, 8, 0, Write, LOCK), 22);
        // Looking again is as dear as before: nothing is kept.
        assert!(system.poll().is_some() && !system.holds(1, LOCK));
        assert_eq!(done(&mut system, 40, 1, Read, LOCK), 60);
        // Modules 3 + 8 + 3 * 4, bus 6 * 3.
        assert_eq!(system.totals().occupied.as_nanos(), 41);
    }

    #[test]
    fn homes_do_not_wait_for_one_another() {
        let mut system = small(2);
        assert_eq!(done(&mut system, 0, 0, Write, LOCK), 4);
        assert_eq!(done(&mut system, 0, 1, Write, COUNT), 4);
    }
}

mod directory {
    use super::*;
    use crate::machine::Directory;
    use Kind::{Exchange, Read, Write};

    /// Two sockets: 0 and 1, 2 and 3.
    fn small() -> System {
        system(4, Memory::Directory(times()))
    }

    fn times() -> Directory {
        Directory {
            line: 64,
            sockets: 2,
            hit: Time::nanos(1),
            exchange: Time::nanos(5),
            memory: Time::nanos(20),
            near: Time::nanos(40),
            far: Time::nanos(100),
            upgrade: Time::nanos(30),
            far_upgrade: Time::nanos(80),
            migrates: false,
            line_busy: Time::nanos(2),
            link_busy: Time::nanos(3),
        }
    }

    #[test]
    fn one_lock_by_hand() {
        let mut system = small();
        // 0 takes the lock: from memory, 20 + 5; then it is a hit, 1 + 5.
        assert_eq!(done(&mut system, 0, 0, Exchange, LOCK), 25);
        assert_eq!(done(&mut system, 25, 0, Exchange, LOCK), 31);
        // 1 looks: near, 31 + 40. 2 looks a moment later: the line is on its way to 1 until 71,
        // then shared: 20 more.
        let near = issue(&mut system, 31, 1, Read, LOCK);
        assert_eq!((near.at.as_nanos(), near.transfer), (71, true));
        let shared = issue(&mut system, 32, 2, Read, LOCK);
        assert_eq!(
            (shared.at.as_nanos(), shared.transfer, shared.queued.as_nanos()),
            (91, false, 39)
        );
        // 0 releases by a store at 100: done for the processor at 101; the line is its own at 180,
        // after 2 answered over the link.
        let release = issue(&mut system, 100, 0, Write, LOCK);
        assert_eq!((release.at.as_nanos(), release.invalidated, release.hit), (101, 2, false));
        assert_eq!(release.occupied.as_nanos(), 3);
        // 2 sees it from the other socket: from 180 on, 100. 0's next exchange, elsewhere, waits
        // for the store: 180 + 20 + 5.
        assert_eq!(done(&mut system, 101, 2, Read, LOCK), 280);
        let next = issue(&mut system, 101, 0, Exchange, COUNT);
        assert_eq!((next.at.as_nanos(), next.queued.as_nanos()), (205, 79));
        // A read does not wait for stores.
        assert_eq!(done(&mut system, 102, 0, Read, Line(3)), 122);
        system.check();
    }

    #[test]
    fn an_owner_keeps_its_line_until_the_request_arrives() {
        let mut system = small();
        done(&mut system, 0, 0, Exchange, LOCK);
        // Both ask for 0's line. It arrives at 1 after 40, and at 2 after another 100; 0 has it for
        // a third of the first way.
        assert_eq!(done(&mut system, 100, 1, Exchange, LOCK), 145);
        assert_eq!(done(&mut system, 101, 2, Exchange, LOCK), 245);
        assert_eq!(done(&mut system, 113, 0, Exchange, LOCK), 119);
        assert!(!issue(&mut system, 114, 0, Read, LOCK).hit);
        // 1 has it from 140 on, for a third of 100.
        assert!(issue(&mut system, 173, 1, Write, LOCK).hit);
        assert!(!issue(&mut system, 174, 1, Write, LOCK).hit);
        system.check();
    }

    #[test]
    fn an_upgrade_is_as_far_as_the_farthest_copy() {
        let mut system = small();
        done(&mut system, 0, 0, Read, LOCK);
        done(&mut system, 0, 1, Read, LOCK);
        // 1 is a neighbour: 30 + 5.
        assert_eq!(done(&mut system, 1_000, 0, Exchange, LOCK), 1_035);
        done(&mut system, 2_000, 2, Read, LOCK);
        // 2 is not: 80 + 5.
        assert_eq!(done(&mut system, 3_000, 0, Exchange, LOCK), 3_085);
        // Two of the other socket have it, and 0 does not: the longer of memory and the upgrade, 80
        // + 5.
        done(&mut system, 4_000, 2, Exchange, LOCK);
        done(&mut system, 5_000, 3, Read, LOCK);
        assert_eq!(done(&mut system, 6_000, 0, Exchange, LOCK), 6_085);
    }

    #[test]
    fn a_written_line_migrates_to_its_reader_and_one_that_was_only_read_is_shared() {
        let mut system = system(4, Memory::Directory(Directory { migrates: true, ..times() }));
        done(&mut system, 0, 0, Exchange, LOCK);
        // 0 has written it: 1 takes it, and writes it at once.
        let read = issue(&mut system, 100, 1, Read, LOCK);
        assert_eq!((read.at.as_nanos(), read.transfer, read.invalidated), (140, true, 1));
        assert_eq!(done(&mut system, 200, 1, Exchange, LOCK), 206);
        // 0 takes it back and does not write it, so 1 shares it, and an exchange has to ask.
        assert_eq!(done(&mut system, 300, 0, Read, LOCK), 340);
        let read = issue(&mut system, 400, 1, Read, LOCK);
        assert_eq!((read.at.as_nanos(), read.transfer, read.invalidated), (440, true, 0));
        assert_eq!(done(&mut system, 500, 0, Read, LOCK), 501);
        assert_eq!(done(&mut system, 600, 0, Exchange, LOCK), 635);
        system.check();
    }

    #[test]
    fn what_is_written_while_the_line_leaves_counts_as_written_before() {
        let mut system = system(4, Memory::Directory(Directory { migrates: true, ..times() }));
        done(&mut system, 0, 0, Read, LOCK);
        // 1 asks for the line, which is only read, at 100; the request arrives at 0 at 113, and at
        // 110 it is written.
        assert_eq!(done(&mut system, 100, 1, Read, LOCK), 140);
        assert!(issue(&mut system, 110, 0, Write, LOCK).hit);
        // So 1 has it alone.
        assert_eq!(done(&mut system, 200, 1, Exchange, LOCK), 206);
        system.check();
    }

    #[test]
    fn requests_for_a_line_queue_and_those_for_others_do_not() {
        let mut system = small();
        done(&mut system, 0, 0, Exchange, LOCK);
        // From 0 to 1, to 2, to 3: 140, 240, 280, and each takes 5 more.
        let ends: Vec<_> = (1..4).map(|p| done(&mut system, 100, p, Exchange, LOCK)).collect();
        assert_eq!(ends, [145, 245, 285]);
        assert_eq!(done(&mut system, 100, 1, Read, COUNT), 120);
    }

    #[test]
    fn reads_of_a_shared_line_are_its_busy_time_apart() {
        let mut system = small();
        done(&mut system, 0, 0, Read, LOCK);
        done(&mut system, 0, 1, Read, LOCK);
        assert_eq!(done(&mut system, 500, 2, Read, LOCK), 520);
        assert_eq!(done(&mut system, 500, 3, Read, LOCK), 522);
    }
}

mod always {
    //! Laws of any accesses, on every machine.

    use super::*;
    use crate::machine::Directory;
    use proptest::prelude::*;

    const LINES: u64 = 3;

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![4 => Just(Kind::Read), 1 => Just(Kind::Write), 1 => Just(Kind::Exchange)]
    }

    /// Gap to the one before, processor, line, kind.
    fn accesses() -> impl Strategy<Value = Vec<(u64, usize, u64, Kind)>> {
        proptest::collection::vec((0..2_000_u64, 0..130_usize, 0..LINES, kind()), 1..150)
    }

    proptest! {
        #[test]
        fn copies_are_what_the_protocol_says(name in 0..machines::NAMES.len(), accesses in accesses()) {
            let machine = machines::by_name(machines::NAMES[name]).unwrap();
            let mut system = System::new(&machine);
            let mut now = Time::ZERO;
            for (gap, processor, line, kind) in accesses {
                now += Time::nanos(gap);
                let access = Access { at: now, processor: processor % machine.processors, line: Line(line), kind };
                let before = holders(&system, &machine, access.line);
                let done = system.access(access);
                system.check();
                let after = holders(&system, &machine, access.line);
                let own = before.contains(&access.processor);
                prop_assert!(done.at > now, "an access takes time");
                prop_assert!(done.queued <= done.at - now);
                let alone = own && before.len() == 1;
                if done.hit && !(alone || own && kind == Kind::Read) {
                    // The line was still there; a writer may lose it by that where lines migrate.
                    let kept: Vec<usize> = before.iter().copied().filter(|&it| it != access.processor).collect();
                    let migrates = matches!(machine.memory, Memory::Directory(Directory { migrates: true, .. }));
                    prop_assert!(after == before || migrates && kind != Kind::Read && after == kept);
                    prop_assert!(matches!(machine.memory, Memory::WriteBack(_) | Memory::Directory(_)));
                    continue;
                }
                if kind == Kind::Read {
                    prop_assert_eq!(done.hit, own);
                }
                match (&machine.memory, kind) {
                    (Memory::Uncached(_), _) => prop_assert!(after.is_empty()),
                    (Memory::Directory(Directory { migrates: true, .. }), Kind::Read) if done.invalidated > 0 => {
                        prop_assert_eq!((before.len(), done.transfer), (1, true));
                        prop_assert_eq!(after, [access.processor]);
                    }
                    // Copies of others stay, and the reader has one.
                    (_, Kind::Read) | (Memory::Update(_), _) => {
                        let grown = before.len() + usize::from(!own);
                        prop_assert!(after.contains(&access.processor) && after.len() == grown);
                        prop_assert_eq!(done.invalidated, 0);
                    }
                    // Those go, whether or not the writer keeps or gets one.
                    (memory, _) => {
                        let through = matches!(memory, Memory::WriteThrough(_));
                        let keeps = own || !through || kind == Kind::Exchange;
                        prop_assert_eq!(after, Vec::from_iter(keeps.then_some(access.processor)));
                        prop_assert_eq!(done.invalidated as usize, before.len() - usize::from(own));
                    }
                }
            }
        }

        #[test]
        fn a_later_request_for_the_same_bus_begins_no_earlier(gaps in proptest::collection::vec(0..3_000_u64, 2..80)) {
            let mut system = System::new(&machines::symmetry_a(20));
            let (mut now, mut last) = (Time::ZERO, Time::ZERO);
            for (index, gap) in gaps.into_iter().enumerate() {
                now += Time::nanos(gap);
                let (processor, line) = (index % 20, Line(index as u64));
                let done = system.access(Access { at: now, processor, line, kind: Kind::Read });
                prop_assert!(done.at >= last + done.occupied || index == 0);
                last = done.at;
            }
        }
    }

    fn holders(system: &System, machine: &Machine, line: Line) -> Vec<usize> {
        (0..machine.processors).filter(|&processor| system.holds(processor, line)).collect()
    }
}

#[test]
fn a_line_is_where_its_bytes_are() {
    let system = System::new(&machines::challenge());
    assert_eq!((system.line_of(127), system.line_of(128)), (Line(0), Line(1)));
}
