//! Models of the seat in which the shim keeps a ring: no thread reads what is taken down, and what
//! is read is there.

#[path = "../../../../preload/src/linux/seat.rs"]
mod seat;

use seat::{CHANGING, FREE, Seat, key};
use stanchion_machine::Model;
use stanchion_machine::sync::Arc;
use stanchion_models::{beside, explore};

/// The generation of the process.
const GENERATION: u32 = 1;
/// An owner's number.
const THREAD: u32 = 7;
/// The owner.
const OWNER: u64 = key(GENERATION, THREAD);

/// Makes a seat with `content` in it.
fn seat(content: u32) -> Arc<Seat<u32>> {
    let seat = Arc::new(Seat::new());
    assert!(fill(&seat, content));
    seat
}

/// Leaves `content` in the seat, if the seat is free. Returns whether it was.
fn fill(seat: &Seat<u32>, content: u32) -> bool {
    let claim = seat.claim(GENERATION);
    claim.is_some_and(|claim| {
        assert_eq!(seat.owner(), key(GENERATION, CHANGING));
        claim.fill(THREAD, Some(content));
        true
    })
}

/// Reads the seat. Loom checks that no other thread writes meanwhile.
fn read(seat: &Seat<u32>) -> Option<u32> {
    seat.read(OWNER, |content| *content)
}

/// A thread reads what another one takes down.
#[test]
fn a_reader_meets_one_that_takes_down() {
    explore("seat::a_reader_meets_one_that_takes_down", Model::new(), || {
        let seat = seat(3);
        let reader = beside(&seat, read);
        let is_gone = seat.take_down(OWNER);
        let seen = reader.join().unwrap();
        assert!(seen.is_none_or(|seen| seen == 3));
        assert_eq!(read(&seat), (!is_gone).then_some(3));
        assert_eq!(seat.owner(), if is_gone { key(GENERATION, FREE) } else { OWNER });
    });
}

/// A thread reads while another one fills the seat.
#[test]
fn a_reader_meets_one_that_fills() {
    explore("seat::a_reader_meets_one_that_fills", Model::new(), || {
        let seat = Arc::new(Seat::new());
        let reader = beside(&seat, read);
        assert!(fill(&seat, 3));
        assert!(reader.join().unwrap().is_none_or(|seen| seen == 3));
        assert_eq!(read(&seat), Some(3));
    });
}

/// A thread takes down what another one has just left.
#[test]
fn one_fills_and_another_takes_down() {
    explore("seat::one_fills_and_another_takes_down", Model::new(), || {
        let seat = Arc::new(Seat::new());
        let other = beside(&seat, |seat| seat.take_down(OWNER));
        assert!(fill(&seat, 3));
        let is_gone = other.join().unwrap();
        assert_eq!(read(&seat), (!is_gone).then_some(3));
    });
}

/// A thread claims the seat that another one takes down.
#[test]
fn one_takes_down_and_another_claims() {
    explore("seat::one_takes_down_and_another_claims", Model::new(), || {
        let seat = seat(3);
        let other = beside(&seat, |seat| fill(seat, 4));
        assert!(seat.take_down(OWNER));
        let is_filled = other.join().unwrap();
        assert_eq!(read(&seat), is_filled.then_some(4));
    });
}

/// Two threads claim a free seat.
#[test]
fn two_claim() {
    explore("seat::two_claim", Model::new(), || {
        let seat = Arc::new(Seat::new());
        let other = beside(&seat, |seat| fill(seat, 4));
        let is_mine = fill(&seat, 3);
        let is_others = other.join().unwrap();
        assert!(is_mine != is_others, "the seat went to both or to none");
        assert_eq!(read(&seat), Some(if is_mine { 3 } else { 4 }));
    });
}

/// A thread reads while the owner takes down what is there and leaves something else.
#[test]
fn a_reader_meets_the_next_content() {
    explore("seat::a_reader_meets_the_next_content", Model::new(), || {
        let seat = seat(3);
        let reader = beside(&seat, read);
        let last = if seat.take_down(OWNER) {
            assert!(fill(&seat, 4));
            4
        } else {
            3
        };
        let seen = reader.join().unwrap();
        assert!(seen.is_none_or(|seen| seen == 3 || seen == last));
        assert_eq!(read(&seat), Some(last));
    });
}
