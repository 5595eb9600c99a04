//! The parallel simulator against the sequential one, whatever the threads, buckets and locks; and
//! what happens when a lock panics.

use crate::common::faulty::Faulty;
use crate::common::random_netlist;
use proptest::prelude::*;
use stanchion_applications::regsim::{self, Netlist, Options, Run, circuits, sequential};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Lock = parking_lot::RawMutex;

fn netlist(text: &str) -> Netlist {
    Netlist::parse(text.as_bytes()).expect("a right netlist")
}

#[track_caller]
fn agrees(netlist: &Netlist, options: Options) -> Run {
    let run = regsim::run::<Lock>(netlist, &options);
    let reference = sequential::run(netlist, options.cycles, options.seed);
    assert_eq!(run.checksum, reference.checksum, "{options:?}");
    let owned: usize = run.threads.iter().map(|share| share.objects).sum();
    assert_eq!(owned, netlist.len(), "every object has one owner");
    run
}

#[test]
fn s27_and_s298() {
    for text in [circuits::S27, circuits::S298] {
        let netlist = netlist(text);
        for threads in [1, 2, 3, 4] {
            for buckets in [1, 64] {
                agrees(
                    &netlist,
                    Options { cycles: 60, threads, seed: 5, buckets, ..Options::default() },
                );
            }
        }
    }
}

#[test]
fn s5378() {
    let run =
        agrees(&netlist(circuits::S5378), Options { cycles: 20, threads: 2, ..Options::default() });
    assert!(run.evaluations() >= 2_779, "every gate once at power-up");
    assert!(run.given > 0, "with two threads one is last");
    // Its own state twice and at least one input: no gate is evaluated with fewer locks.
    assert!(run.waits.objects.acquisitions() >= 3 * run.evaluations());
}

/// Computed by another program, in another language, that evaluates each net by recursion.
#[test]
fn known_checksums() {
    let known = [
        (circuits::S27, 1_000, 0x87ea_fa97_6b95_acda),
        (circuits::S298, 1_000, 0xee8f_cd99_309b_5ab3),
        (circuits::S5378, 200, 0x47ca_d931_9b3b_7513),
    ];
    for (text, cycles, checksum) in known {
        let run = agrees(&netlist(text), Options { cycles, threads: 2, ..Options::default() });
        assert_eq!(run.checksum, checksum);
    }
}

#[test]
fn more_threads_than_gates() {
    let run =
        agrees(&netlist(circuits::S27), Options { cycles: 5, threads: 64, ..Options::default() });
    assert_eq!(run.threads.len(), 64);
    agrees(
        &netlist("OUTPUT(q)\nq = DFF(q)\n"),
        Options { cycles: 3, threads: 4, ..Options::default() },
    );
}

#[test]
fn flip_flops_that_read_flip_flops_and_inputs() {
    let text = "INPUT(i)\nOUTPUT(c)\nOUTPUT(i)\nc = DFF(b)\nb = DFF(a)\na = DFF(i)\n";
    for threads in 1..4 {
        agrees(&netlist(text), Options { cycles: 200, threads, ..Options::default() });
    }
}

#[test]
fn no_cycles() {
    let run =
        agrees(&netlist(circuits::S27), Options { cycles: 0, threads: 3, ..Options::default() });
    assert_eq!((run.checksum, run.phases, run.evaluations()), (0, 0, 0));
}

#[test]
fn one_thread_does_not_wait() {
    let run = agrees(&netlist(circuits::S298), Options { cycles: 30, ..Options::default() });
    assert_eq!(
        (run.waits.locks().contended(), run.waits.barrier.contended(), run.given),
        (0, 0, 0)
    );
}

#[test]
fn another_seed_is_another_run() {
    let netlist = netlist(circuits::S298);
    let sum = |seed| {
        agrees(&netlist, Options { cycles: 60, threads: 2, seed, ..Options::default() }).checksum
    };
    assert_ne!(sum(1), sum(2));
}

#[test]
fn nonsense_is_refused() {
    let netlist = netlist(circuits::S27);
    for (threads, buckets, word) in
        [(0, 1, "1 to 64"), (65, 1, "1 to 64"), (1, 0, "at least one lock")]
    {
        let options = Options { threads, buckets, ..Options::default() };
        let panic = catch_unwind(|| regsim::run::<Lock>(&netlist, &options)).expect_err("refused");
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or(panic.downcast_ref::<&str>().copied()).expect("a message");
        assert!(message.contains(word), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_circuits(text in random_netlist(), threads in 1_usize..5, buckets in 1_usize..9, seed: u64) {
        agrees(&netlist(&text), Options { cycles: 12, threads, seed, buckets, ..Options::default() });
    }
}

#[test]
fn a_panic_in_one_thread_reaches_the_caller_and_stops_the_others() {
    let netlist = netlist(circuits::S298);
    let options = Options { cycles: u64::MAX, threads: 4, ..Options::default() };
    let run = || regsim::run_with(&netlist, &options, &Faulty::after(5_000));
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the lock panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the lock is out of order"));
}

#[test]
fn a_pinned_run_finds_the_same_and_gives_the_caller_its_processors_back() {
    let before = stanchion_machine::topology::processors();
    let netlist = netlist(circuits::S298);
    for threads in [1, before.len().min(4), 64] {
        let run =
            agrees(&netlist, Options { cycles: 20, threads, pinned: true, ..Options::default() });
        let mut processors: Vec<usize> =
            run.threads.iter().filter_map(|share| share.processor).collect();
        processors.sort_unstable();
        processors.dedup();
        if threads > before.len() {
            assert!(processors.is_empty(), "{threads} threads on {processors:?}");
        } else if cfg!(target_os = "linux") {
            assert_eq!(processors, before[..threads], "one each");
        }
        assert_eq!(stanchion_machine::topology::processors(), before);
    }
    let free = agrees(&netlist, Options { cycles: 20, ..Options::default() });
    assert!(free.threads.iter().all(|share| share.processor.is_none()));
}
