//! Models of every stack over every memory: the same questions, asked of each.
//!
//! Each model of 2 threads, and its preemptions:
//!
//! - `two_threads_push…`: Treiber's all with hazards, 3 with counts; elimination 3 with counts;
//!   Herlihy's 2, with counts 3; locked all.
//! - `a_push_meets_a_pop…`: Treiber's all; Herlihy's 2, with counts 3; locked all.
//! - `two_threads_pop…`: Treiber's all; Herlihy's 2, with counts 3; locked all.
//! - `two_threads_push_and_pop_bounded`: Treiber's 2; elimination 2, with hazards 1; Herlihy's 1.
//! - `reuse_meets_a_slow_pop_bounded`, where one pops while the other takes all nodes out and uses
//!   one again (ABA): Treiber's 3; elimination 2; Herlihy's 1, with counts 2.
//! - `pop_all_meets_pushes_bounded`: Treiber's 3.
//!
//! The model of 3 threads:
//!
//! - `three_threads_bounded`: Treiber's 1, with counts 2; elimination 1, with counts 2; Herlihy's
//!   1, one operation each; locked 2.
//!
//! One operation of each of two threads without a bound is in `once.rs` where it is not here. That
//! file also says why some do not end.
//!
//! The list is of whole explorations. `2 of 3` below is a model with two bounds: the brief one is
//! 2, and the whole one is 3. Models and bounds differ from stack to stack, so this file names each
//! stack instead of expanding the table (`crates/lockfree/src/table.rs`).
//!
//! Nodes keep their values in checked cells, so that a stack which gives a value to the right
//! thread too early fails too.

use stanchion_lockfree_loom::ConcurrentStack;
use stanchion_lockfree_loom::memory::{Counted, Hazard, Memory};
use stanchion_lockfree_loom::stack::{EliminationStack, HerlihyStack, LockedStack, TreiberStack};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{brief, explore};

/// A stack under test, with values that differ.
trait Stack: ConcurrentStack<Item = u32> + Default + Send + Sync + 'static {}
impl<S: ConcurrentStack<Item = u32> + Default + Send + Sync + 'static> Stack for S {}

/// Checks that the values that came out and those that are left are the values that were put in.
fn account<S: Stack>(stack: &S, mut out: Vec<u32>, put_in: &[u32]) {
    while let Some(value) = stack.pop() {
        out.push(value);
    }
    assert!(stack.is_empty());
    out.sort_unstable();
    assert_eq!(out, put_in);
}

/// A stack with one value, and nodes that have been used before.
fn used<S: Stack>() -> Arc<S> {
    let stack = S::default();
    stack.push(10);
    stack.push(11);
    assert_eq!([stack.pop(), stack.pop()], [Some(11), Some(10)]);
    stack.push(1);
    Arc::new(stack)
}

fn two_push<S: Stack>() {
    let stack = used::<S>();
    let other = {
        let stack = stack.clone();
        thread::spawn(move || stack.push(2))
    };
    stack.push(3);
    other.join().unwrap();
    account(&*stack, vec![], &[1, 2, 3]);
}

fn push_and_pop<S: Stack>() {
    let stack = used::<S>();
    let other = {
        let stack = stack.clone();
        thread::spawn(move || stack.push(2))
    };
    let mine = stack.pop();
    assert!(mine.is_some(), "it was never empty");
    other.join().unwrap();
    account(&*stack, mine.into_iter().collect(), &[1, 2]);
}

fn two_pop<S: Stack>() {
    let stack = used::<S>();
    let other = {
        let stack = stack.clone();
        thread::spawn(move || stack.pop())
    };
    let mine = stack.pop();
    let others = other.join().unwrap();
    assert!(mine.is_some() != others.is_some());
    account(&*stack, mine.into_iter().chain(others).collect(), &[1]);
}

/// Two threads, each of which pushes and pops.
fn two_threads<S: Stack>() {
    let stack = Arc::new(S::default());
    let other = {
        let stack = stack.clone();
        thread::spawn(move || {
            stack.push(1);
            stack.pop()
        })
    };
    stack.push(2);
    let mine = stack.pop();
    let others = other.join().unwrap();
    assert!(mine.is_some() && others.is_some(), "each pop came after as many pushes");
    account(&*stack, mine.into_iter().chain(others).collect(), &[1, 2]);
}

/// One pops while the other takes both nodes out and uses one of them again.
fn reuse<S: Stack>() {
    let stack = Arc::new(S::default());
    stack.push(1);
    stack.push(2);
    let other = {
        let stack = stack.clone();
        thread::spawn(move || {
            let first = stack.pop();
            let second = stack.pop();
            stack.push(3);
            [first, second]
        })
    };
    let mine = stack.pop();
    let others = other.join().unwrap();
    let out = others.into_iter().chain([mine]).flatten().collect();
    account(&*stack, out, &[1, 2, 3]);
}

fn pop_all<M: Memory>() {
    let stack = Arc::new(TreiberStack::<u32, M>::default());
    stack.push(1);
    let other = {
        let stack = stack.clone();
        thread::spawn(move || {
            stack.push(2);
            stack.push(3);
            stack.pop()
        })
    };
    let mut out: Vec<u32> = stack.pop_all().collect();
    assert!(out.is_sorted_by(|above, below| above > below));
    out.extend(other.join().unwrap());
    account(&*stack, out, &[1, 2, 3]);
}

fn three_threads<S: Stack>() {
    let stack = Arc::new(S::default());
    stack.push(1);
    let others = [2, 3].map(|value| {
        let stack = stack.clone();
        thread::spawn(move || {
            stack.push(value);
            stack.pop()
        })
    });
    let mine = stack.pop();
    let out = others.map(|other| other.join().unwrap()).into_iter().chain([mine]).flatten();
    let out = out.collect();
    account(&*stack, out, &[1, 2, 3]);
}

/// As above, with one operation each.
fn three_threads_once<S: Stack>() {
    let stack = used::<S>();
    let others = [2, 3].map(|value| {
        let stack = stack.clone();
        thread::spawn(move || stack.push(value))
    });
    let mine = stack.pop();
    assert!(mine.is_some(), "it was never empty");
    others.into_iter().for_each(|other| other.join().unwrap());
    account(&*stack, mine.into_iter().collect(), &[1, 2, 3]);
}

/// One test: unbounded, with a bound of preemptions, or with two, of which the second is that of a
/// whole exploration.
macro_rules! models {
    ($($name:ident: $body:expr $(, $bound:literal $(of $whole:literal)?)?;)+) => {$(
        #[test]
        fn $name() {
            let bounds: &[usize] = &[$($bound $(, $whole)?)?];
            let model = match *bounds {
                [] => Model::new(),
                [bound] => Model::new().preemptions(bound),
                [bound, whole, ..] => brief::bounded(Model::new(), bound, whole),
            };
            let name = concat!(module_path!(), "::", stringify!($name));
            explore(name.trim_start_matches("together::stacks::"), model, $body);
        }
    )+};
}

mod treiber_with_hazards {
    use super::*;
    type Treiber = TreiberStack<u32, Hazard>;

    models! {
        two_threads_push: two_push::<Treiber>;
        a_push_meets_a_pop: push_and_pop::<Treiber>;
        two_threads_pop: two_pop::<Treiber>;
        two_threads_push_and_pop_bounded: two_threads::<Treiber>, 2;
        reuse_meets_a_slow_pop_bounded: reuse::<Treiber>, 2 of 3;
        pop_all_meets_pushes_bounded: pop_all::<Hazard>, 3;
        three_threads_bounded: three_threads::<Treiber>, 1;
    }
}

mod treiber_with_counts {
    use super::*;
    type Treiber = TreiberStack<u32, Counted>;

    models! {
        two_threads_push_bounded: two_push::<Treiber>, 3;
        a_push_meets_a_pop: push_and_pop::<Treiber>;
        two_threads_pop: two_pop::<Treiber>;
        two_threads_push_and_pop_bounded: two_threads::<Treiber>, 2;
        reuse_meets_a_slow_pop_bounded: reuse::<Treiber>, 2 of 3;
        pop_all_meets_pushes_bounded: pop_all::<Counted>, 3;
        three_threads_bounded: three_threads::<Treiber>, 2;
    }
}

mod herlihy_with_hazards {
    use super::*;
    type Herlihy = HerlihyStack<u32, Hazard>;

    models! {
        two_threads_push_bounded: two_push::<Herlihy>, 2;
        a_push_meets_a_pop_bounded: push_and_pop::<Herlihy>, 2;
        two_threads_pop_bounded: two_pop::<Herlihy>, 2;
        two_threads_push_and_pop_bounded: two_threads::<Herlihy>, 1;
        reuse_meets_a_slow_pop_bounded: reuse::<Herlihy>, 1;
        three_threads_bounded: three_threads_once::<Herlihy>, 1;
    }
}

mod herlihy_with_counts {
    use super::*;
    type Herlihy = HerlihyStack<u32, Counted>;

    models! {
        two_threads_push_bounded: two_push::<Herlihy>, 2 of 3;
        a_push_meets_a_pop_bounded: push_and_pop::<Herlihy>, 2 of 3;
        two_threads_pop_bounded: two_pop::<Herlihy>, 2 of 3;
        two_threads_push_and_pop_bounded: two_threads::<Herlihy>, 1;
        reuse_meets_a_slow_pop_bounded: reuse::<Herlihy>, 1 of 2;
        three_threads_bounded: three_threads_once::<Herlihy>, 1;
    }
}

mod elimination_with_hazards {
    use super::*;
    type Elimination = EliminationStack<u32, Hazard>;

    models! {
        two_threads_push_and_pop_bounded: two_threads::<Elimination>, 1;
        reuse_meets_a_slow_pop_bounded: reuse::<Elimination>, 2;
        three_threads_bounded: three_threads::<Elimination>, 1;
    }
}

mod elimination_with_counts {
    use super::*;
    type Elimination = EliminationStack<u32, Counted>;

    models! {
        two_threads_push_bounded: two_push::<Elimination>, 3;
        two_threads_push_and_pop_bounded: two_threads::<Elimination>, 2;
        reuse_meets_a_slow_pop_bounded: reuse::<Elimination>, 2;
        three_threads_bounded: three_threads::<Elimination>, 1 of 2;
    }
}

mod locked {
    use super::*;
    type Locked = LockedStack<u32, stanchion_spin::TestAndSet>;

    models! {
        two_threads_push: two_push::<Locked>;
        a_push_meets_a_pop: push_and_pop::<Locked>;
        two_threads_pop: two_pop::<Locked>;
        three_threads_bounded: three_threads::<Locked>, 2;
    }
}
