//! Models of Regsim's own protocols: the barrier at the end of a phase, the marks of due objects,
//! and the giving away of objects. And whole runs, with bounded preemption.

use stanchion_applications_loom::regsim::barrier::{Barrier, Broken};
use stanchion_applications_loom::regsim::stations::Stations;
use stanchion_applications_loom::regsim::wiring::Wiring;
use stanchion_applications_loom::regsim::{self, Netlist, Options, WaitStatistics, sequential};
use stanchion_machine::Model;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::thread;
use stanchion_models::{Lock, brief, explore};

/// The cells that two parties write in a phase: one for each, and one for the last to come.
struct Papers {
    /// A cell of each party, written by that party.
    own: [UnsafeCell<u32>; 2],
    /// A cell that the last party to come writes.
    last: UnsafeCell<u32>,
}

// SAFETY: the barrier keeps writers and readers apart. The models check that.
unsafe impl Sync for Papers {}

/// Two parties meet twice. Each reads the cells of the other party and of the last to come.
#[test]
fn two_parties_meet_twice_bounded() {
    let model = brief::bounded(Model::new(), 6, 8);
    explore("regsim::two_parties_meet_twice_bounded", model, || {
        let barrier = Arc::new(Barrier::<Lock, u32>::new(2, 0));
        let papers = Arc::new(Papers {
            own: [UnsafeCell::new(0), UnsafeCell::new(0)],
            last: UnsafeCell::new(0),
        });
        let party = |party: usize| {
            let (barrier, papers) = (barrier.clone(), papers.clone());
            move || {
                let mut waits = WaitStatistics::default();
                for phase in 1..=2 {
                    // SAFETY: only this party writes its paper, and the other reads it after the
                    // second meeting.
                    papers.own[party].with_mut(|paper| unsafe { *paper = phase });
                    let add = |sum: &mut u32| *sum += 1;
                    let met = barrier.meet(party, &mut waits, add, |first, _| {
                        assert_ne!(first, party, "of two, the last is not the first");
                        // SAFETY: the other party waits.
                        papers.last.with_mut(|paper| unsafe { *paper += 1 });
                    });
                    assert_eq!(met, Ok(()));
                    // SAFETY: the last to come wrote it before this party was let go, and writes
                    // again only when this one has arrived.
                    assert_eq!(papers.last.with(|paper| unsafe { *paper }), phase);
                    // The other party's cell of phase 1 may already be overwritten here, so it is
                    // read when no party writes any more.
                    if phase == 2 {
                        // SAFETY: the other wrote it before it arrived, for the last time.
                        assert_eq!(papers.own[1 - party].with(|paper| unsafe { *paper }), 2);
                    }
                }
                barrier.with(&mut waits, |sum| *sum)
            }
        };
        let other = thread::spawn(party(1));
        assert_eq!(party(0)(), 4);
        assert_eq!(other.join().unwrap(), 4);
    });
}

#[test]
fn a_party_that_gives_up_lets_the_other_go() {
    explore("regsim::a_party_that_gives_up_lets_the_other_go", Model::new(), || {
        let barrier = Arc::new(Barrier::<Lock, ()>::new(2, ()));
        let quitter = {
            let barrier = barrier.clone();
            thread::spawn(move || barrier.give_up())
        };
        let mut waits = WaitStatistics::default();
        let met = barrier.meet(0, &mut waits, |()| (), |_, _| unreachable!("it is never complete"));
        assert_eq!(met, Err(Broken));
        quitter.join().unwrap();
    });
}

/// i = 0 -> x = 1 -> y = 0. The first of two threads owns i and x, the other y, and both gates are
/// due at power-up.
const CHAIN: &[u8] = b"INPUT(i)\nx = NOT(i)\ny = NOT(x)\nOUTPUT(y)\n";

fn chain(buckets: usize) -> Stations<Lock> {
    let netlist = Netlist::parse(CHAIN).unwrap();
    Stations::new(Wiring::new(&netlist), 2, buckets, |_| false)
}

const I: u32 = 0;
const X: u32 = 1;
const Y: u32 = 2;

/// Evaluates the work of `thread` that is due, and returns the number of stations that become due.
fn serve(stations: &Stations<Lock>, thread: usize, parity: usize) -> usize {
    let (mut waits, mut due) = (WaitStatistics::default(), Vec::new());
    stations.take_due(thread, parity, &mut due, &mut waits);
    due.iter().map(|&object| stations.evaluate(object, parity, &mut waits)).sum()
}

/// y is evaluated while x moves. It may see the old x or the new one, but never stay with the old
/// one.
fn no_move_is_missed(buckets: usize) {
    let stations = Arc::new(chain(buckets));
    let other = {
        let stations = stations.clone();
        thread::spawn(move || serve(&stations, 1, 0))
    };
    let mut due = serve(&stations, 0, 0) + other.join().unwrap();
    let mut waits = WaitStatistics::default();
    assert!(stations.value(X, &mut waits));
    for parity in [1, 0] {
        due = (0..2).map(|party| serve(&stations, party, parity)).sum();
    }
    assert_eq!(due, 0, "it must have settled");
    assert!(!stations.value(Y, &mut waits), "y = not x = 0");
}

#[test]
fn no_move_is_missed_with_three_buckets() {
    explore("regsim::no_move_is_missed_with_three_buckets", Model::new(), || no_move_is_missed(3));
}

#[test]
fn no_move_is_missed_with_one_bucket() {
    explore("regsim::no_move_is_missed_with_one_bucket", Model::new(), || no_move_is_missed(1));
}

#[test]
fn the_last_gives_one_object_to_the_first_and_both_know_at_once() {
    let model = Model::new();
    explore("regsim::the_last_gives_one_object_to_the_first_and_both_know_at_once", model, || {
        let shared = Arc::new((chain(3), Barrier::<Lock, ()>::new(2, ())));
        let party = |party: usize| {
            let shared = shared.clone();
            move || {
                let (stations, barrier) = &*shared;
                let mut waits = WaitStatistics::default();
                let mut given = None;
                let give =
                    |first, waits: &mut WaitStatistics| given = stations.give(party, first, waits);
                barrier.meet(party, &mut waits, |()| (), give).unwrap();
                // Party 1 has only y and keeps it; party 0 gives i, which it has had longest.
                let owners = [I, X, Y].map(|object| stations.owner(object, &mut waits));
                if let Some(object) = given {
                    assert_eq!((party, object), (0, I));
                }
                (given, owners)
            }
        };
        let other = thread::spawn(party(1));
        let (mine, theirs) = (party(0)(), other.join().unwrap());
        assert_eq!(mine.1, theirs.1);
        assert_eq!(theirs.0, None);
        let expected = if mine.0.is_some() { [1, 0, 1] } else { [0, 0, 1] };
        assert_eq!(mine.1, expected);
        let owned = shared.0.owned(&mut WaitStatistics::default());
        let expected = if mine.0.is_some() { [vec![X], vec![Y, I]] } else { [vec![I, X], vec![Y]] };
        assert_eq!(owned, expected);
    });
}

#[test]
fn whole_runs_agree_with_the_sequential_one_preemptions_4() {
    // Not in the body: a model's thread has a small stack.
    let netlist = Netlist::parse(
        b"q = DFF(y)\nx = NOT(q)\ny = NOT(x)\nz = XOR(x, y)\nOUTPUT(y)\nOUTPUT(z)\n",
    )
    .unwrap();
    let expected = sequential::run(&netlist, 2, 1).checksum;
    let options =
        Options { cycles: 2, threads: 2, seed: 1, buckets: 1, pinned: true, ..Options::default() };
    let model = Model::new().preemptions(4);
    explore("regsim::whole_runs_agree_with_the_sequential_one_preemptions_4", model, move || {
        assert_eq!(regsim::run::<Lock>(&netlist, &options).checksum, expected);
    });
}
