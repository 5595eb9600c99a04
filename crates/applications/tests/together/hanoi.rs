//! Hanoi: every disk arrives, in as many moves as the schedule has, whatever the threads and locks;
//! and what happens when a lock panics.

use crate::common::faulty::Faulty;
use proptest::prelude::*;
use stanchion_applications::hanoi::{self, MAX_THREADS, Options, Refused, Run, closed_form};
use stanchion_applications::{Waits, groups};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

type Lock = parking_lot::RawMutex;

#[track_caller]
fn arrives(options: Options) -> Run {
    let run = hanoi::run::<Lock>(&options).expect("good options");
    let needed = closed_form(options.disks, options.pegs);
    assert_eq!(run.fault, None, "{options:?}");
    assert_eq!(
        (run.needed, run.moves),
        (needed, needed * u64::from(options.rounds)),
        "{options:?}"
    );
    assert_eq!(run.goal, if options.rounds % 2 == 1 { options.pegs - 1 } else { 0 });
    assert_eq!(run.pegs[run.goal].len(), options.disks);
    // A lifting and a lowering each.
    assert_eq!(run.turns.acquisitions(), 2 * run.moves);
    assert_eq!(run.threads.len(), options.threads);
    run
}

#[test]
fn the_papers_own() {
    let run = arrives(Options::default());
    assert_eq!((run.moves, run.chain), (1_535, 350));
    assert!(run.threads.iter().all(|share| share.moves > 0), "each thread has its disk");
    // Pegs, disks, rows, columns, the count and the posts; the paper counted 207.
    assert_eq!(run.locks.len(), 5 + 64 + 64 + 5 + 1 + 64);
}

#[test]
fn any_number_of_threads() {
    for threads in [1, 2, 3, 7, 12, 64] {
        for rounds in [1, 2, 5] {
            arrives(Options {
                disks: 12,
                threads,
                rounds,
                work_ns: 0,
                draw_ns: 0,
                ..Options::default()
            });
        }
    }
}

#[test]
fn a_window_system_that_is_waited_for() {
    let window_ns = 200_000;
    let run = arrives(Options { window_ns, ..Options::default() });
    // Carried past at least the peg that it leaves and the one that it comes to, in five columns.
    let windows = 2 * run.moves / 16 - 5;
    assert!(run.elapsed.as_nanos() as u64 * 5 > windows * window_ns, "{run:?}");
}

#[test]
fn more_threads_than_disks() {
    let run = arrives(Options { disks: 1, rounds: 3, ..Options::default() });
    assert_eq!(run.threads[0].moves, 3);
    assert!(run.threads[1..].iter().all(|share| share.moves == 0));
}

#[test]
fn one_thread_does_not_wait() {
    let run = arrives(Options { threads: 1, rounds: 4, ..Options::default() });
    assert_eq!(run.turns.contended(), 0);
    assert!(run.locks.iter().all(|lock| lock.waits.contended() == 0));
}

#[test]
fn a_long_run_with_many_threads() {
    arrives(Options { rounds: 20, work_ns: 0, ..Options::default() });
}

#[test]
fn every_lock_has_a_name_of_its_own_and_is_used() {
    let made = Mutex::new(Vec::new());
    let make = |name: &str| {
        made.lock().expect("nobody panics").push(name.to_owned());
        <Lock as lock_api::RawMutex>::INIT
    };
    let options = Options { disks: 5, pegs: 3, threads: 5, rounds: 4, ..Options::default() };
    let run = hanoi::run_with(&options, &make, &mut |_| ()).expect("good options");
    let made = made.into_inner().expect("nobody panics");
    assert_eq!(run.locks.iter().map(|lock| lock.name.clone()).collect::<Vec<_>>(), made);
    assert_eq!(made.iter().collect::<HashSet<_>>().len(), made.len());
    for name in ["peg 0", "peg 2", "disk 4", "row 0", "column 1", "count", "post 4"] {
        assert!(made.iter().any(|made| made == name), "{name} in {made:?}");
    }
    let groups = groups(&run.locks);
    let sizes: Vec<_> = groups.iter().map(|(name, locks, _)| (*name, *locks)).collect();
    let expected = [("peg", 3), ("disk", 5), ("row", 5), ("column", 3), ("count", 1), ("post", 5)];
    assert_eq!(sizes, expected);
    let acquisitions = |name| {
        let group = groups.iter().find(|group| group.0 == name);
        group.map_or(0, |(_, _, waits): &(&str, usize, Waits)| waits.acquisitions())
    };
    // One for each step, and one for each time that it was too early.
    assert!(acquisitions("peg") >= 2 * run.moves);
    assert_eq!(acquisitions("disk"), 2 * run.moves);
    assert_eq!(acquisitions("row"), 2 * run.moves);
    assert_eq!(acquisitions("count"), run.moves);
}

#[test]
fn a_watcher_sees_the_disks_on_their_way_and_in_the_end() {
    let mut scenes = Vec::new();
    // Long enough to be seen more than once.
    let options =
        Options { disks: 4, pegs: 3, threads: 2, work_ns: 20_000_000, ..Options::default() };
    let make = |_: &str| <Lock as lock_api::RawMutex>::INIT;
    let run = hanoi::run_with(&options, &make, &mut |scene| scenes.push(scene.clone()))
        .expect("good options");
    assert!(run.elapsed > Duration::from_millis(7 * 20), "each of the chain takes its time");
    assert!(scenes.len() > 1, "{} scenes", scenes.len());
    assert!(scenes.is_sorted_by_key(|scene| scene.moves));
    let end = scenes.last().expect("the last scene");
    assert_eq!((end.moves, end.of, end.held.len()), (15, 15, 0));
    assert_eq!(end.pegs, run.pegs);
}

#[test]
fn a_drawing_takes_its_time() {
    let slow =
        Options { disks: 3, threads: 1, work_ns: 0, draw_ns: 1_000_000, ..Options::default() };
    let run = arrives(slow);
    // 5 moves, each drawn in two rows and twice over each of two pegs at least.
    assert!(run.elapsed > Duration::from_millis(5 * 5), "{:?}", run.elapsed);
}

#[test]
fn nonsense_is_refused() {
    let refused =
        |options: Options| hanoi::run::<Lock>(&options).map(drop).expect_err("refused").to_string();
    let good = Options::default();
    assert_eq!(refused(Options { disks: 0, ..good }), "0 disks: must be 1 to 64");
    assert_eq!(refused(Options { disks: 65, ..good }), "65 disks: must be 1 to 64");
    assert_eq!(refused(Options { pegs: 2, ..good }), "2 pegs: must be 3 to 8");
    assert_eq!(refused(Options { pegs: 9, ..good }), "9 pegs: must be 3 to 8");
    assert_eq!(refused(Options { threads: 0, ..good }), "0 threads: must be 1 to 64");
    assert_eq!(
        refused(Options { threads: MAX_THREADS + 1, ..good }),
        "65 threads: must be 1 to 64"
    );
    assert_eq!(refused(Options { rounds: 0, ..good }), "no rounds: must be at least 1");
    assert_eq!(
        refused(Options { pegs: 3, ..good }),
        "64 disks on 3 pegs take more than 2^63 moves, the limit is 2097152: take more pegs or fewer disks"
    );
    let moves = (1 << 22) - 1;
    let options = Options { disks: 22, pegs: 3, ..good };
    let refused = hanoi::run::<Lock>(&options).map(drop);
    assert_eq!(refused, Err(Refused::Moves { disks: 22, pegs: 3, moves }));
}

#[test]
fn a_panic_in_one_thread_reaches_the_caller_and_stops_the_others() {
    for after in [1, 40, 300, 5_000] {
        let options = Options { threads: 8, rounds: u32::MAX, ..Options::default() };
        let run = || hanoi::run_with(&options, &Faulty::after(after), &mut |_| ());
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the lock panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the lock is out of order"));
    }
}

#[test]
fn a_panic_of_the_watcher_reaches_the_caller() {
    let options = Options { threads: 4, rounds: u32::MAX, ..Options::default() };
    let make = |_: &str| <Lock as lock_api::RawMutex>::INIT;
    let run = || hanoi::run_with(&options, &make, &mut |_| panic!("seen enough"));
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the watcher panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"seen enough"));
}

#[test]
fn pinned_threads_are_dealt_out_and_the_caller_gets_its_processors_back() {
    let before = stanchion_machine::topology::processors();
    let run = arrives(Options { pinned: true, ..Options::default() });
    for (who, share) in run.threads.iter().enumerate() {
        let dealt = before[who % before.len()];
        assert_eq!(share.processor, cfg!(target_os = "linux").then_some(dealt));
    }
    assert_eq!(stanchion_machine::topology::processors(), before);
    let free = arrives(Options { threads: 3, ..Options::default() });
    assert!(free.threads.iter().all(|share| share.processor.is_none()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_towers(disks in 1_usize..20, pegs in 4_usize..9, threads in 1_usize..24, rounds in 1_u32..4) {
        arrives(Options { disks, pegs, threads, rounds, work_ns: 0, draw_ns: 0, pinned: false, ..Options::default() });
    }
}
