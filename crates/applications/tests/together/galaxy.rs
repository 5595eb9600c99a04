//! Galaxy: the same stars at the same positions, to the last bit, whatever the threads, chunks and
//! locks; and what happens when a lock panics.

use crate::common::faulty::Faulty;
use proptest::prelude::*;
use stanchion_applications::galaxy::{
    self, Encounter, HEIGHT, Options, Refused, Run, STEP, Scene, WIDTH, sequential,
};
use std::ops::ControlFlow::{Break, Continue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

type Lock = parking_lot::RawMutex;

const SMALL: Options = Options {
    stars: 700,
    steps: 60,
    threads: 1,
    seed: 5,
    ratio: 0.5,
    chunk: 16,
    pinned: false,
    instruction_ns: stanchion_applications::CVAX_INSTRUCTION_NS,
};

#[track_caller]
fn agrees(options: Options) -> Run {
    let run = galaxy::run::<Lock>(&options).expect("good options");
    let reference = sequential::run(&options).expect("good options");
    assert_eq!(run.checksum, reference.checksum, "{options:?}");
    assert_eq!((run.steps, run.fault), (options.steps, None), "{options:?}");
    let chunks: u64 = run.threads.iter().map(|share| share.chunks).sum();
    assert_eq!(chunks, options.stars.div_ceil(options.chunk) as u64 * options.steps);
    run
}

#[test]
fn any_number_of_threads_and_any_chunks() {
    let sums: Vec<u64> = [(1, 16), (2, 16), (3, 1), (5, 699), (8, 700), (64, 100), (4, usize::MAX)]
        .into_iter()
        .map(|(threads, chunk)| agrees(Options { threads, chunk, ..SMALL }).checksum)
        .collect();
    assert!(sums.iter().all(|sum| *sum == sums[0]));
}

/// Computed by another program, in another language. The same on every computer: only what IEEE 754
/// rounds correctly is computed.
#[test]
fn the_known_checksum() {
    let run =
        agrees(Options { stars: 300, steps: 1_500, seed: 1, threads: 2, ..Options::default() });
    assert_eq!(run.checksum, 0xe4fc_063c_b271_98da);
}

#[test]
fn the_centres_go_where_they_go_alone() {
    let run = agrees(Options { steps: 900, stars: 10, threads: 2, ..SMALL });
    let mut encounter = Encounter::new(SMALL.ratio);
    for _ in 0..900 {
        encounter.advance(STEP);
    }
    assert_eq!(run.centres, encounter);
    assert!(encounter.distance() < 1.5, "near the nearest point: {}", encounter.distance());
}

#[test]
fn an_encounter_leaves_its_marks() {
    // Some stars are flung out of view; without the second mass none is.
    let options = Options { stars: 400, steps: 3_000, chunk: 50, ..SMALL };
    assert!(agrees(Options { ratio: 1.0, ..options }).shown < 400);
    assert_eq!(agrees(Options { ratio: 0.0, ..options }).shown, 400);
}

#[test]
fn one_star_and_no_steps() {
    assert_eq!(agrees(Options { stars: 1, threads: 4, ..SMALL }).threads.len(), 4);
    assert_eq!(agrees(Options { steps: 0, threads: 3, ..SMALL }).shown, 700);
}

#[test]
fn seed_steps_and_ratio_make_another_run() {
    let plain = agrees(SMALL).checksum;
    assert_ne!(agrees(Options { seed: 6, ..SMALL }).checksum, plain);
    assert_ne!(agrees(Options { steps: 61, ..SMALL }).checksum, plain);
    assert_ne!(agrees(Options { ratio: 0.6, ..SMALL }).checksum, plain);
}

#[test]
fn thirteen_locks_with_names() {
    let made = Mutex::new(Vec::new());
    let make = |name: &str| {
        made.lock().expect("nobody panics").push(name.to_owned());
        <Lock as lock_api::RawMutex>::INIT
    };
    let options = Options { threads: 2, ..SMALL };
    let run = galaxy::run_with(&options, &make, 0, &mut |_| Continue(())).expect("good options");
    let made = made.into_inner().expect("nobody panics");
    assert_eq!(run.locks.iter().map(|lock| lock.name.clone()).collect::<Vec<_>>(), made);
    let bands = (0..10).map(|band| format!("band {band}"));
    let expected: Vec<String> =
        ["phase", "pool", "centres"].map(str::to_owned).into_iter().chain(bands).collect();
    assert_eq!(made, expected);
    let acquisitions = |index: usize| run.locks[index].waits.acquisitions();
    let chunks = 700_u64.div_ceil(16) * 60;
    // To take it and to bring it back; once for nothing at the end of each thread's step; once to
    // turn the piles.
    assert_eq!(acquisitions(1), 2 * chunks + (2 + 1) * 60);
    assert_eq!(acquisitions(2), chunks);
    assert!(acquisitions(3 + 3) > 0, "the stars of the first centre");
}

#[test]
fn one_thread_does_not_wait() {
    let run = agrees(SMALL);
    assert!(run.locks.iter().all(|lock| lock.waits.contended() == 0));
    assert_eq!(run.barrier.contended(), 0);
}

fn watched(
    options: &Options,
    every: u64,
    mut until: impl FnMut(&Scene) -> bool,
) -> (Run, Vec<Scene>) {
    let make = |_: &str| <Lock as lock_api::RawMutex>::INIT;
    let mut scenes = Vec::new();
    let mut watch = |scene: &Scene| {
        scenes.push(scene.clone());
        if until(scene) { Break(()) } else { Continue(()) }
    };
    let run = galaxy::run_with(options, &make, every, &mut watch).expect("good options");
    (run, scenes)
}

#[test]
fn a_watcher_sees_the_same_whatever_the_threads() {
    let options = Options { steps: 70, ..SMALL };
    let (run, scenes) = watched(&options, 30, |_| false);
    let steps: Vec<u64> = scenes.iter().map(|scene| scene.step).collect();
    assert_eq!((steps, run.checksum), (vec![0, 30, 60, 70], agrees(options).checksum));
    for scene in &scenes {
        assert_eq!((scene.of, scene.cells.len()), (70, WIDTH * HEIGHT));
        assert_eq!(scene.cells.iter().sum::<u32>(), 700);
    }
    assert_ne!(scenes[0].cells, scenes[1].cells);
    // The second centre starts far to the right of the first, at the same height.
    let [Some(one), Some(two)] = scenes[0].centres else { panic!("both are in view") };
    assert!(one.0 + 100 < two.0 && one.1 == two.1, "{one:?} {two:?}");
    for threads in [2, 5] {
        assert_eq!(watched(&Options { threads, ..options }, 30, |_| false).1, scenes);
    }
}

#[test]
fn a_watcher_that_has_seen_enough_ends_the_run() {
    for threads in [1, 4] {
        let options = Options { steps: u64::MAX, threads, ..SMALL };
        let (run, scenes) = watched(&options, 10, |scene| scene.step == 40);
        assert_eq!((run.steps, scenes.len(), run.fault), (40, 5, None));
        assert_eq!(run.checksum, agrees(Options { steps: 40, ..SMALL }).checksum);
    }
}

#[test]
fn nonsense_is_refused() {
    let refused = |options: Options| {
        let refused = galaxy::run::<Lock>(&options).map(drop).expect_err("refused");
        assert_eq!(sequential::run(&options).map(drop), Err(refused));
        refused.to_string()
    };
    assert_eq!(refused(Options { stars: 0, ..SMALL }), "0 stars: must be 1 to 4194304");
    assert_eq!(
        refused(Options { stars: 4_194_305, ..SMALL }),
        "4194305 stars: must be 1 to 4194304"
    );
    assert_eq!(refused(Options { threads: 0, ..SMALL }), "0 threads: must be 1 to 64");
    assert_eq!(refused(Options { threads: 65, ..SMALL }), "65 threads: must be 1 to 64");
    assert_eq!(refused(Options { chunk: 0, ..SMALL }), "chunks of no stars: must have at least 1");
    for ratio in [-0.1, 1.5, f64::INFINITY] {
        let expected = format!("a second mass of {ratio}: must be 0 to 1, the first being 1");
        assert_eq!(refused(Options { ratio, ..SMALL }), expected);
    }
    let not_a_number = galaxy::run::<Lock>(&Options { ratio: f64::NAN, ..SMALL });
    assert!(matches!(not_a_number, Err(Refused::Ratio(ratio)) if ratio.is_nan()));
}

#[test]
fn a_panic_in_one_thread_reaches_the_caller_and_stops_the_others() {
    for after in [1, 20, 300, 5_000] {
        let options = Options { threads: 6, steps: u64::MAX, ..SMALL };
        let run = || galaxy::run_with(&options, &Faulty::after(after), 7, &mut |_| Continue(()));
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the lock panics");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the lock is out of order"));
    }
}

#[test]
fn a_panic_of_the_watcher_reaches_the_caller() {
    let options = Options { threads: 4, steps: u64::MAX, ..SMALL };
    let panic = catch_unwind(AssertUnwindSafe(|| watched(&options, 5, |_| panic!("seen enough"))));
    let panic = panic.expect_err("the watcher panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"seen enough"));
}

#[test]
fn a_pinned_run_finds_the_same_and_gives_the_caller_its_processors_back() {
    let before = stanchion_machine::topology::processors();
    let run = agrees(Options { threads: before.len().min(8), pinned: true, ..SMALL });
    let pinned = run.threads.iter().filter(|share| share.processor.is_some()).count();
    assert_eq!(pinned, if cfg!(target_os = "linux") { run.threads.len() } else { 0 });
    assert_eq!(stanchion_machine::topology::processors(), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_galaxies(stars in 1_usize..300, steps in 0_u64..40, threads in 1_usize..6, chunk in 1_usize..80, ratio in 0.0_f64..=1.0, seed: u64) {
        agrees(Options { stars, steps, threads, seed, ratio, chunk, pinned: false, ..Options::default() });
    }
}
