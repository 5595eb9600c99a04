//! Histories of which it is known whether they are linearizable.

use stanchion_linearizability::Event::{Begin, End};
use stanchion_linearizability::specification::Operation::{self, IsEmpty, Pop, Push};
use stanchion_linearizability::specification::Outcome::{self, Empty, Full, Popped, Pushed};
use stanchion_linearizability::specification::{Count, Counter, PriorityQueue, Queue, Stack};
use stanchion_linearizability::{
    Call, Event, History, Malformed, Sequential, Specification, Violation, check,
};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

fn judged<S: Specification, const N: usize>(
    initial: &S,
    events: [Event<S::Operation, S::Outcome>; N],
) -> Result<Vec<usize>, Violation<S>> {
    check(initial, &History::from_events(events).expect("a history"))
        .map_err(|error| error.violation().expect("it is decided"))
}

type Events<const N: usize> = [Event<Operation<char>, Outcome<char>>; N];

/// Herlihy and Wing 1990, figure 1: four histories of a queue. The second and the fourth are
/// impossible.
mod herlihy_and_wing {
    use super::*;

    fn queue<const N: usize>(events: Events<N>) -> bool {
        judged(&Queue::new(), events).is_ok()
    }

    #[test]
    fn h1_overlapping_pushes_come_out_in_either_order() {
        assert!(queue([
            Begin(A, Push('x')),
            Begin(B, Push('y')),
            End(B, Pushed),
            End(A, Pushed),
            Begin(B, Pop),
            End(B, Popped(Some('x'))),
            Begin(A, Pop),
            End(A, Popped(Some('y'))),
            Begin(A, Push('z')),
        ]));
    }

    #[test]
    fn h2_the_later_push_does_not_come_out_first() {
        assert!(!queue([
            Begin(A, Push('x')),
            End(A, Pushed),
            Begin(B, Push('y')),
            Begin(A, Pop),
            End(B, Pushed),
            End(A, Popped(Some('y'))),
        ]));
    }

    #[test]
    fn h3_a_value_comes_out_before_its_push_has_returned() {
        assert!(queue([Begin(A, Push('x')), Begin(B, Pop), End(B, Popped(Some('x'))),]));
    }

    #[test]
    fn h4_a_value_comes_out_once() {
        assert!(!queue([
            Begin(A, Push('x')),
            Begin(B, Push('y')),
            End(A, Pushed),
            End(B, Pushed),
            Begin(A, Pop),
            Begin(C, Pop),
            End(A, Popped(Some('y'))),
            End(C, Popped(Some('y'))),
        ]));
    }
}

/// Sequentially consistent, but not linearizable: Herlihy and Wing 1990, section 1. Each thread
/// alone could have seen it; real time forbids it.
#[test]
fn each_thread_for_itself_is_not_enough() {
    let violation = judged(
        &Queue::new(),
        [
            Begin(A, Push('x')),
            End(A, Pushed),
            Begin(B, Push('y')),
            End(B, Pushed),
            Begin(B, Pop),
            End(B, Popped(Some('y'))),
        ],
    )
    .unwrap_err();
    assert_eq!(violation.order(), [0, 1]);
}

/// Two queues p and q, each of them sequentially consistent. Linearizability is local, sequential
/// consistency is not (Herlihy and Wing, section 3.3). The calls on one queue are refuted alone.
#[test]
fn a_queue_is_refuted_alone() {
    let p = [
        Begin(A, Push('x')),
        End(A, Pushed),
        Begin(B, Push('y')),
        End(B, Pushed),
        Begin(A, Pop),
        End(A, Popped(Some('y'))),
    ];
    assert!(judged(&Queue::new(), p).is_err());
}

/// The order of steps that the 1998 paper's queue guards against: a pop finds nothing although a
/// push had returned.
#[test]
fn nothing_is_found_while_something_is_in() {
    let impossible = [Begin(A, Push('x')), End(A, Pushed), Begin(B, Pop), End(B, Popped(None))];
    assert!(judged(&Queue::new(), impossible.clone()).is_err());
    assert!(judged(&Stack::new(), impossible).is_err());
    let possible = [Begin(B, Pop), Begin(A, Push('x')), End(A, Pushed), End(B, Popped(None))];
    assert!(judged(&Queue::new(), possible).is_ok());
}

/// Treiber's stack without tags. A reads the top x and its next y. B pops both and pushes x again.
/// A's exchange succeeds and makes y the top.
#[test]
fn the_aba_of_a_stack() {
    let violation = judged(
        &Stack::new(),
        [
            Begin(B, Push('y')),
            End(B, Pushed),
            Begin(B, Push('x')),
            End(B, Pushed),
            Begin(A, Pop),
            Begin(B, Pop),
            End(B, Popped(Some('x'))),
            Begin(B, Pop),
            End(B, Popped(Some('y'))),
            Begin(B, Push('x')),
            End(B, Pushed),
            End(A, Popped(Some('x'))),
            Begin(A, Pop),
            End(A, Popped(Some('y'))),
        ],
    )
    .unwrap_err();
    let shown = violation.to_string();
    assert!(shown.contains("this cannot come next: pop: 'y' (thread 0)"), "{shown}");
}

#[test]
fn a_bounded_queue_is_full_only_when_it_is() {
    let full = |refused| {
        judged(
            &Queue::bounded(1),
            [
                Begin(A, Push('x')),
                End(A, Pushed),
                Begin(B, Pop),
                Begin(A, Push('y')),
                End(A, refused),
                End(B, Popped(Some('x'))),
            ],
        )
    };
    assert!(full(Full).is_ok());
    assert!(full(Pushed).is_ok());
    assert!(judged(&Queue::bounded(2), [Begin(A, Push('x')), End(A, Full)]).is_err());
    assert!(judged(&Stack::new(), [Begin(A, Push('x')), End(A, Full)]).is_err());
}

#[test]
fn a_counter_hands_out_numbers_in_the_order_of_time() {
    let add = Count::FetchAdd(1);
    let numbers = |first, second| {
        judged(
            &Counter::new(0),
            [Begin(A, add), End(A, Some(first)), Begin(B, add), End(B, Some(second))],
        )
        .is_ok()
    };
    assert!(numbers(0, 1));
    assert!(!numbers(1, 0));
    assert!(!numbers(0, 0));
}

/// The later addition is seen and the earlier one not: what a counter in parts may show.
#[test]
fn a_sum_of_parts_is_not_linearizable() {
    let seen = judged(
        &Counter::new(0),
        [
            Begin(C, Count::Get),
            Begin(A, Count::Add(1)),
            End(A, None),
            Begin(B, Count::Add(10)),
            End(B, None),
            End(C, Some(10)),
        ],
    );
    assert!(seen.is_err());
}

#[test]
fn a_relaxed_heap_may_pass_over_so_many() {
    let events = |value| {
        [
            Begin(A, Push('a')),
            End(A, Pushed),
            Begin(A, Push('b')),
            End(A, Pushed),
            Begin(A, Push('c')),
            End(A, Pushed),
            Begin(B, Pop),
            End(B, Popped(Some(value))),
            Begin(B, IsEmpty),
            End(B, Empty(false)),
        ]
    };
    for (rank, allowed) in [(0, "a"), (1, "ab"), (2, "abc"), (usize::MAX, "abc")] {
        for value in ['a', 'b', 'c', 'd'] {
            let verdict = judged(&PriorityQueue::relaxed(rank), events(value)).is_ok();
            assert_eq!(verdict, allowed.contains(value), "{value} at {rank}");
        }
    }
}

/// A relaxed pop that was never seen to return may have taken any of the first values. The values
/// that are left decide which.
#[test]
fn an_unfinished_call_took_whatever_explains_the_rest() {
    let events = |left| {
        [
            Begin(A, Push('a')),
            End(A, Pushed),
            Begin(A, Push('b')),
            End(A, Pushed),
            Begin(B, Pop),
            Begin(A, Pop),
            End(A, Popped(Some(left))),
            Begin(A, Pop),
            End(A, Popped(None)),
        ]
    };
    assert!(judged(&PriorityQueue::relaxed(1), events('a')).is_ok());
    assert!(judged(&PriorityQueue::relaxed(1), events('b')).is_ok());
    assert!(judged(&PriorityQueue::new(), events('a')).is_ok(), "b was taken after it");
    assert!(judged(&PriorityQueue::new(), events('b')).is_ok(), "a was taken before it");
    assert!(judged(&PriorityQueue::relaxed(1), events('c')).is_err(), "it was never there");
}

#[test]
fn the_drawing_shows_only_what_the_error_needs() {
    let violation = judged(
        &Queue::new(),
        [
            Begin(A, Push('x')),
            Begin(B, Pop),
            End(A, Pushed),
            Begin(C, Pop),
            End(B, Popped(Some('x'))),
            Begin(B, Push('y')),
            End(C, Popped(Some('x'))),
            End(B, Pushed),
            Begin(A, Pop),
            End(A, Popped(Some('y'))),
        ],
    )
    .unwrap_err();
    let expected = "\
not linearizable: no order of these 3 of 5 calls is allowed

thread 0  ├push('x')┤
thread 1   ├pop: 'x'──┤
thread 2             ├pop: 'x'┤

";
    assert!(violation.to_string().starts_with(expected), "{violation}");
}

#[test]
fn what_threads_cannot_do_is_refused() {
    let call = |thread, begin, end, outcome| Call { thread, operation: Pop, outcome, begin, end };
    let popped = Some(Popped(Some(1)));
    let refused = |calls| History::<Operation<i32>, _>::new(calls).unwrap_err();
    assert!(matches!(refused(vec![call(A, 2, 1, popped)]), Malformed::Backwards { .. }));
    assert!(matches!(refused(vec![call(A, 2, 3, None)]), Malformed::Half { .. }));
    assert!(matches!(refused(vec![call(A, 2, u64::MAX, popped)]), Malformed::Half { .. }));
    let two = vec![call(A, 0, 2, popped), call(B, 1, 3, popped), call(A, 1, 4, popped)];
    assert!(matches!(refused(two), Malformed::TwoAtOnce { thread: A, .. }));
    let nothing = History::<Operation<i32>, Outcome<i32>>::from_events([End(B, Pushed)]);
    let message = nothing.unwrap_err().to_string();
    assert!(message.contains("event 0: thread 1"), "{message}");
}

/// Forty calls that all overlap, and that cannot be told apart. Without Lowe's memory of visited
/// states the search would not end.
#[test]
fn many_calls_that_overlap_do_not_take_for_ever() {
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Lamp(u32);
    impl Sequential for Lamp {
        type Operation = bool;
        type Outcome = u32;
        fn call(&mut self, press: &bool) -> u32 {
            self.0 += u32::from(*press);
            if *press { 0 } else { self.0 }
        }
    }
    let presses = (0..16).map(|thread| Begin(thread, true));
    let ends = (0..16).map(|thread| End(thread, 0));
    let look = [Begin(0, false), End(0, 15)];
    let history = History::from_events(presses.chain(ends).chain(look)).unwrap();
    let violation = check(&Lamp(0), &history).unwrap_err().violation().expect("it is decided");
    assert_eq!(violation.order().len(), 16);
}
