//! Models of one operation of one thread against one of another, without a bound. They cover the
//! stacks and queues that have bounded models in the files beside this one.
//!
//! The models beside these ask for more: threads that go on, nodes that come back, three threads.
//! Without a bound they do not end, since each of these multiplies the executions. So here each
//! thread makes one call, and everything that has nothing to do with the question is kept out of
//! its way:
//!
//! - `fresh`: some values, and no thread keeps a node. So a pop leaves its node with its thread:
//!   with counts no list is shared.
//! - `kept`: some values, and this thread keeps a node. So its push takes that one, and the other's
//!   is new.
//!
//! | model | asks |
//! | --- | --- |
//! | `push_and_push` | does the structure have both values |
//! | `push_and_pop` | does a pop find what was there, or what is just coming |
//! | `pop_and_pop_of_one` | does one thread get it, and the other nothing |
//! | `push_and_look`, `pop_and_look` | is a structure never seen empty while something is in it |
//!
//! Even so some take too long for every run, or have not been seen to end. They have a bound in
//! `stacks.rs` and `queues.rs`. So the list at the end is a selection. This table has the number of
//! executions at which each ended, or at which it was stopped (+):
//!
//! | structure | two pushes | push and pop | two pops of one | push and look | pop and look |
//! | --- | --- | --- | --- | --- | --- |
//! | Herlihy's stack, hazards | 145,000+ | 31,000+ | 47,000+ | below | 46,053 |
//! | Herlihy's stack, counts | 53,000+ | 65,000+ | 201,000+ | below | below |
//! | Michael and Scott's queue, hazards | 51,000+ | below | 65,000+ | below | below |
//! | Michael and Scott's queue, counts | 128,755 | in `queues.rs` | 87,000+ | below | below |
//! | Prakash, Lee and Johnson's queue, hazards | 55,000+ | 23,000+ | 53,000+ | 29,000+ | 19,000+ |
//! | Prakash, Lee and Johnson's queue, counts | 57,000+ | 113,000+ | 29,000+ | below | below |
//!
//! Two pushes write the same words and look again at what they have read, and so do two snapshots.
//! Each look may see each of the other's writes or not, and the looks multiply. That is the
//! algorithm, and no smaller model has fewer.
//!
//! Nodes keep their values in checked cells. Every model prints `model NAME: N executions`.

use stanchion_lockfree_loom::memory::{Counted, Hazard};
use stanchion_lockfree_loom::queue::{MichaelScottQueue, PrakashLeeJohnsonQueue};
use stanchion_lockfree_loom::stack::{EliminationStack, HerlihyStack, TreiberStack};
use stanchion_lockfree_loom::{ConcurrentQueue, ConcurrentStack};
use stanchion_machine::Model;
use stanchion_machine::sync::Arc;
use stanchion_models::{beside, explore};

/// A structure under test, with values that differ.
trait Line: Default + Send + Sync + 'static {
    /// Set if the first value in is the first value out.
    const FIRST_IN: bool;
    fn put(&self, value: u32);
    fn take(&self) -> Option<u32>;
    fn look(&self) -> bool;
}

macro_rules! lines {
    ($($type:ty, $kind:ident, $first_in:literal, |$line:ident, $value:ident| $put:expr;)+) => {$(
        impl Line for $type {
            const FIRST_IN: bool = $first_in;
            fn put(&self, $value: u32) {
                let $line = self;
                $put
            }
            fn take(&self) -> Option<u32> {
                $kind::pop(self)
            }
            fn look(&self) -> bool {
                $kind::is_empty(self)
            }
        }
    )+};
}

lines! {
    TreiberStack<u32, Counted>, ConcurrentStack, false, |stack, value| stack.push(value);
    EliminationStack<u32, Hazard>, ConcurrentStack, false, |stack, value| stack.push(value);
    EliminationStack<u32, Counted>, ConcurrentStack, false, |stack, value| stack.push(value);
    HerlihyStack<u32, Hazard>, ConcurrentStack, false, |stack, value| stack.push(value);
    HerlihyStack<u32, Counted>, ConcurrentStack, false, |stack, value| stack.push(value);
    MichaelScottQueue<u32, Hazard>, ConcurrentQueue, true, |queue, value| queue.push(value);
    MichaelScottQueue<u32, Counted>, ConcurrentQueue, true, |queue, value| queue.push(value);
    PrakashLeeJohnsonQueue<u32, Counted>, ConcurrentQueue, true, |queue, value| queue.push(value);
}

/// Returns a structure with these values, in that order. No thread keeps a node.
fn fresh<L: Line>(values: &[u32]) -> Arc<L> {
    let line = L::default();
    values.iter().for_each(|value| line.put(*value));
    Arc::new(line)
}

/// As above, but this thread keeps a node.
fn kept<L: Line>(values: &[u32]) -> Arc<L> {
    let line = L::default();
    if L::FIRST_IN {
        line.put(9);
    }
    values.iter().for_each(|value| line.put(*value));
    if !L::FIRST_IN {
        line.put(9);
    }
    assert_eq!(line.take(), Some(9));
    Arc::new(line)
}

/// Returns the values that are left, in the order in which they went in.
fn rest<L: Line>(line: &L) -> Vec<u32> {
    let mut rest: Vec<u32> = std::iter::from_fn(|| line.take()).collect();
    if !L::FIRST_IN {
        rest.reverse();
    }
    rest
}

fn push_and_push<L: Line>() {
    let line = kept::<L>(&[]);
    let other = beside(&line, |line| line.put(2));
    line.put(1);
    other.join().unwrap();
    assert!(matches!(rest(&*line)[..], [1, 2] | [2, 1]));
}

fn push_and_pop<L: Line>() {
    let line = fresh::<L>(&[1]);
    let other = beside(&line, |line| line.put(2));
    let mine = line.take();
    other.join().unwrap();
    let left = rest(&*line);
    match mine {
        Some(1) => assert_eq!(left, [2]),
        Some(2) if !L::FIRST_IN => assert_eq!(left, [1]),
        _ => panic!("{mine:?} came out, and {left:?} is left"),
    }
}

fn pop_and_pop_of_one<L: Line>() {
    let line = fresh::<L>(&[1]);
    let other = beside(&line, L::take);
    let mut both = [line.take(), other.join().unwrap()];
    both.sort_unstable();
    assert_eq!(both, [None, Some(1)]);
    assert!(line.look());
}

fn push_and_look<L: Line>() {
    let line = fresh::<L>(&[1]);
    let other = beside(&line, |line| line.put(2));
    assert!(!line.look());
    other.join().unwrap();
    assert_eq!(rest(&*line), [1, 2]);
}

fn pop_and_look<L: Line>() {
    let line = fresh::<L>(&[1, 2]);
    let other = beside(&line, L::take);
    assert!(!line.look());
    let first = other.join().unwrap();
    assert_eq!(rest(&*line).len(), 1);
    assert_eq!(first, Some(if L::FIRST_IN { 1 } else { 2 }));
}

macro_rules! models {
    ($($module:ident: $line:ty { $($name:ident)+ })+) => {$(
        mod $module {
            use super::*;

            $(
                #[test]
                fn $name() {
                    let name = concat!("once::", stringify!($module), "::", stringify!($name));
                    explore(name, Model::new().objects(40), super::$name::<$line>);
                }
            )+
        }
    )+};
}

models! {
    treiber_counted: TreiberStack<u32, Counted> { push_and_push }
    elimination_hazard: EliminationStack<u32, Hazard> {
        push_and_push push_and_pop pop_and_pop_of_one push_and_look pop_and_look
    }
    elimination_counted: EliminationStack<u32, Counted> {
        push_and_push push_and_pop pop_and_pop_of_one push_and_look pop_and_look
    }
    herlihy_hazard: HerlihyStack<u32, Hazard> { push_and_look }
    herlihy_counted: HerlihyStack<u32, Counted> { push_and_look pop_and_look }
    michael_scott_hazard: MichaelScottQueue<u32, Hazard> {
        push_and_pop push_and_look pop_and_look
    }
    michael_scott_counted: MichaelScottQueue<u32, Counted> { push_and_look pop_and_look }
    prakash_lee_johnson_counted: PrakashLeeJohnsonQueue<u32, Counted> {
        push_and_look pop_and_look
    }
}
