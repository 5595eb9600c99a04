use super::*;

/// Memory with an empty table.
struct Memory(Vec<u64>);

impl Memory {
    fn new() -> Self {
        let mut words = vec![0; SIZE / 8];
        words[0] = u64::from_ne_bytes(header());
        Self(words)
    }

    fn table(&mut self) -> &Table {
        // SAFETY: borrowed from the vector, which is that long.
        unsafe { Table::at(self.0.as_mut_ptr().cast(), SIZE) }.unwrap()
    }
}

fn hold(lock: u64, mode: Mode) -> Hold {
    Hold { lock, mode, name: None, place: None }
}

fn exclusive(lock: u64) -> Hold {
    hold(lock, Mode::Exclusive)
}

/// Adds an acquisition as a library does.
fn add(table: &Table, thread: u64, held: &[Hold], taken: Hold) {
    let mix = |key: u64, hold: &Hold| {
        key.wrapping_add((hold.lock << 3 | hold.mode.number()).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    };
    let key = mix(held.iter().fold(0, mix).rotate_left(7), &taken);
    if !table.add_thread(1, key, thread) {
        table.add(&Acquisition { process: 1, thread, key, held, taken, path: None });
    }
}

#[test]
fn opposite_orders_of_different_threads_are_a_cycle() {
    let mut memory = Memory::new();
    let table = memory.table();
    let path = table.name(b"path");
    let held = [Hold { name: table.name(b"first"), place: table.name(b"f"), ..exclusive(1) }];
    let taken = Hold { name: table.name(b"second"), place: table.name(b"g"), ..exclusive(2) };
    table.add(&Acquisition { process: 1, thread: 5, key: 1, held: &held, taken, path });
    add(table, 6, &[exclusive(2)], exclusive(1));
    let findings = table.findings();
    assert_eq!((findings.pairs, findings.cycles.len()), (2, 1), "{findings:?}");
    let cycle = &findings.cycles[0];
    let step = cycle.steps.iter().find(|step| step.thread == 5).unwrap();
    assert_eq!((step.held.name.as_deref(), step.held.place.as_deref()), (Some("first"), Some("f")));
    assert_eq!(step.taken.name.as_deref(), Some("second"));
    assert_eq!((step.path.as_deref(), cycle.needs_writer), (Some("path"), false));
    assert_eq!(findings.losses, Losses::default());
}

#[test]
fn one_thread_and_a_gate_are_none() {
    let mut memory = Memory::new();
    let table = memory.table();
    add(table, 1, &[exclusive(1)], exclusive(2));
    add(table, 1, &[exclusive(2)], exclusive(1));
    assert!(table.findings().cycles.is_empty(), "one thread");
    add(table, 1, &[exclusive(3), exclusive(9)], exclusive(4));
    add(table, 2, &[exclusive(4), exclusive(9)], exclusive(3));
    assert!(table.findings().cycles.is_empty(), "lock 9 keeps them apart");
    // The same acquisition by a second thread, which the entry of the first has.
    add(table, 2, &[exclusive(1)], exclusive(2));
    assert_eq!(table.findings().cycles.len(), 1);
}

#[test]
fn processes_have_locks_of_their_own() {
    let mut memory = Memory::new();
    let table = memory.table();
    add(table, 1, &[exclusive(1)], exclusive(2));
    let held = &[exclusive(2)];
    let taken = exclusive(1);
    table.add(&Acquisition { process: 2, thread: 2, key: 7, held, taken, path: None });
    assert!(table.findings().cycles.is_empty());
    assert!(!table.add_thread(2, 8, 2), "another key");
}

#[test]
fn readers_and_recursions_are_as_in_the_graph() {
    let mut memory = Memory::new();
    let table = memory.table();
    let (shared, recursive) = (Mode::Shared, Mode::SharedRecursive);
    add(table, 1, &[exclusive(1)], hold(2, recursive));
    add(table, 2, &[hold(2, recursive)], exclusive(1));
    assert!(table.findings().cycles.is_empty(), "such a reader blocks for no reader");
    add(table, 1, &[exclusive(3)], hold(4, shared));
    add(table, 2, &[hold(4, shared)], exclusive(3));
    let findings = table.findings();
    assert_eq!(findings.cycles.len(), 1);
    assert!(findings.cycles[0].needs_writer);
    add(table, 1, &[hold(5, shared)], hold(5, shared));
    add(table, 1, &[hold(6, recursive)], hold(6, recursive));
    add(table, 1, &[exclusive(7)], exclusive(7));
    let findings = table.findings();
    let found: Vec<_> =
        findings.recursions.iter().map(|found| (found.step.held.lock, found.is_fatal)).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&(5, false)) && found.contains(&(7, true)), "{found:?}");
}

#[test]
fn a_lost_lock_leaves_the_graph() {
    let mut memory = Memory::new();
    let table = memory.table();
    add(table, 1, &[exclusive(1)], exclusive(2));
    add(table, 2, &[exclusive(2)], exclusive(1));
    table.lose_lock(2, 1);
    assert_eq!(table.findings().cycles.len(), 1, "another process's");
    table.lose_lock(1, 2);
    let findings = table.findings();
    assert!(findings.cycles.is_empty());
    assert_eq!((findings.losses.unseen_releases, findings.pairs), (2, 0));
}

#[test]
fn what_does_not_fit_is_counted() {
    let mut memory = Memory::new();
    let table = memory.table();
    let many: Vec<_> = (1..=MAX_HELD as u64 + 1).map(exclusive).collect();
    add(table, 1, &many, exclusive(99));
    add(table, 1, &many[1..], exclusive(99));
    (0..200).for_each(|_| {
        let held = &[exclusive(1)];
        let taken = exclusive(2);
        table.add(&Acquisition { process: 1, thread: 1, key: 42, held, taken, path: None });
    });
    assert!(!table.has_room(42) && table.has_room(1 << 40));
    table.lose(Loss::Identity);
    let losses = table.findings().losses;
    assert_eq!((losses.too_deep, losses.unidentified), (1, 1));
    assert!(losses.cut_acquisitions >= 136, "{losses:?}");
    for thread in 1..20 {
        assert!(table.add_thread(1, 42, thread));
    }
    assert_eq!(table.name(b""), None);
    assert_eq!(table.name(&[b'x'; MAX_NAME + 1]), None);
    let names = (0..3_000).filter_map(|name| table.name(format!("name {name}").as_bytes()));
    assert_eq!(names.count(), 2048);
    assert!(table.name(b"name 7").is_some(), "those that are there are found");
}

#[test]
fn threads_that_add_at_once_lose_nothing() {
    let mut memory = Memory::new();
    let table = memory.table();
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            scope.spawn(move || {
                for pair in 1..500 {
                    let name = table.name(format!("lock {}", pair % 7).as_bytes());
                    let first = Hold { name, ..exclusive(pair) };
                    add(table, thread, &[first], exclusive(pair + 1));
                }
            });
        }
    });
    let findings = table.findings();
    assert_eq!((findings.pairs, findings.cycles.len()), (499, 0));
    assert_eq!(findings.losses, Losses::default());
    let all = table.acquisitions();
    // The same pair may have two entries, by threads that came at once.
    let threads = all.iter().map(|seen| seen.threads.len()).sum::<usize>();
    assert_eq!(threads, 4 * 499, "each thread of each pair");
    for seen in &all {
        let name = table.text(seen.held[0].name.unwrap()).unwrap();
        assert_eq!(name, format!("lock {}", seen.held[0].lock % 7));
    }
}

#[test]
fn wild_writes_are_survived() {
    for wild in [u64::MAX, 2, 3, 0x0102_0304_0506_0708] {
        let mut memory = Memory::new();
        add(memory.table(), 1, &[exclusive(1)], exclusive(2));
        memory.0[1..].fill(wild);
        let table = memory.table();
        let _ = table.findings();
        let _ = table.name(b"queue");
        add(table, 2, &[exclusive(2)], exclusive(1));
        table.lose_lock(1, 1);
    }
    let mut memory = Memory::new();
    memory.0[0] = 7;
    let start = memory.0.as_mut_ptr().cast::<u8>();
    for (start, length) in [(start, SIZE), (start.wrapping_add(4), SIZE), (start, SIZE - 8)] {
        // SAFETY: it is looked at only if it has the length.
        assert_eq!(unsafe { Table::at(start, length) }.err(), Some(Foreign));
    }
}
