//! Models of the queues in lists, over every memory and under a lock: the same questions, asked of
//! each.
//!
//! | model | threads |
//! | --- | --- |
//! | `two_threads_push` | 2 |
//! | `a_push_meets_a_pop` | 2: the value that was there comes first |
//! | `two_threads_pop` | 2, and one value |
//! | `a_look_meets_a_pop_and_a_push` | 2: never empty while something is in it |
//! | `a_first_push_meets_a_pop` | 2: a queue that was never used |
//! | `two_threads_push_and_pop` | 2 |
//! | `reuse_meets_a_slow_pop` | 2, few nodes: one pops while the other reuses the dummy (ABA) |
//! | `reuse_meets_a_slow_push` | the same with a push |
//! | `pushes_meet_pops` | 2: one pushes into nodes that the other has emptied |
//! | `a_push_meets_a_pop_that_frees` | 2: one takes the spare segment, the other frees or spares |
//! | `three_threads` | 3 |
//!
//! The models of 2 preemptions are named `…_bounded`. There is 1 preemption where snapshots are
//! taken, and for three threads with hazard pointers. Models of two threads are also without bound,
//! where that ends within seconds. With hazard pointers, and with snapshots, it does not; one
//! operation of each is in `once.rs`. With both, three threads do not end with 1 preemption. Bounds
//! differ from queue to queue, so this file names each queue instead of expanding the table
//! (`crates/lockfree/src/table.rs`).
//!
//! Nodes keep their values in checked cells, so that a queue which gives a value to the right
//! thread too early fails too.

use stanchion_lockfree_loom::ConcurrentQueue;
use stanchion_lockfree_loom::memory::{Counted, Hazard};
use stanchion_lockfree_loom::queue::{
    LockedQueue, MichaelScottQueue, PrakashLeeJohnsonQueue, SegmentedQueue, TwoLockQueue,
};
use stanchion_machine::Model;
use stanchion_machine::sync::Arc;
use stanchion_models::{Lock, beside, explore};

/// A queue under test, with values that differ.
trait Queue: ConcurrentQueue<Item = u32> + Default + Send + Sync + 'static {
    fn push(&self, value: u32) {
        assert!(self.try_push(value).is_ok(), "these have no bound");
    }
}
impl<Q: ConcurrentQueue<Item = u32> + Default + Send + Sync + 'static> Queue for Q {}

/// Checks that the values that are left come in that order, and that with those that came out
/// before they are the values that were put in.
fn account<Q: Queue>(queue: &Q, before: &[Option<u32>], put_in: &[u32]) -> Vec<u32> {
    let rest: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
    assert!(queue.is_empty());
    let mut all: Vec<u32> = before.iter().flatten().chain(&rest).copied().collect();
    all.sort_unstable();
    assert_eq!(all, put_in);
    rest
}

/// A queue with one value, and nodes that have been used before: two of them.
fn used<Q: Queue>() -> Arc<Q> {
    let queue = Q::default();
    queue.push(10);
    assert_eq!(queue.pop(), Some(10));
    queue.push(1);
    Arc::new(queue)
}

fn two_push<Q: Queue>() {
    let queue = used::<Q>();
    let other = beside(&queue, |queue| queue.push(2));
    queue.push(3);
    other.join().unwrap();
    assert_eq!(account(&*queue, &[], &[1, 2, 3])[0], 1);
}

fn push_and_pop<Q: Queue>() {
    let queue = used::<Q>();
    let other = beside(&queue, |queue| queue.push(2));
    let mine = queue.pop();
    assert_eq!(mine, Some(1), "it was the first, and the queue was never empty");
    other.join().unwrap();
    account(&*queue, &[mine], &[1, 2]);
}

fn two_pop<Q: Queue>() {
    let queue = used::<Q>();
    let other = beside(&queue, Q::pop);
    let mine = queue.pop();
    let others = other.join().unwrap();
    assert!(mine.is_some() != others.is_some());
    account(&*queue, &[mine, others], &[1]);
}

fn look<Q: Queue>() {
    let queue = used::<Q>();
    queue.push(2);
    let other = beside(&queue, |queue| {
        let first = queue.pop();
        queue.push(3);
        first
    });
    assert!(!queue.is_empty());
    assert_eq!(other.join().unwrap(), Some(1));
    assert_eq!(account(&*queue, &[], &[2, 3]), [2, 3]);
}

fn first_push<Q: Queue>() {
    let queue = Arc::new(Q::default());
    let other = beside(&queue, |queue| {
        queue.push(1);
        queue.push(2);
    });
    let mine = queue.pop();
    assert_ne!(mine, Some(2));
    other.join().unwrap();
    account(&*queue, &[mine], &[1, 2]);
}

/// Two threads, each of which pushes and pops.
fn two_threads<Q: Queue>() {
    let queue = Arc::new(Q::default());
    let other = beside(&queue, |queue| {
        queue.push(1);
        queue.pop()
    });
    queue.push(2);
    let mine = queue.pop();
    let others = other.join().unwrap();
    assert!(mine.is_some() && others.is_some(), "each pop came after as many pushes");
    account(&*queue, &[mine, others], &[1, 2]);
}

/// One pops while the other takes the dummy out, and links it again as the last.
fn reuse_pop<Q: Queue>() {
    let queue = used::<Q>();
    queue.push(2);
    let other = beside(&queue, |queue| {
        let first = queue.pop();
        queue.push(3);
        let second = queue.pop();
        queue.push(4);
        [first, second]
    });
    let mine = queue.pop();
    assert!(mine.is_some(), "there were always two, or one and a pop");
    let [first, second] = other.join().unwrap();
    let order = [first, second, mine].into_iter().flatten().max();
    assert!(order <= Some(3) && first < second, "first in, first out");
    assert_eq!(account(&*queue, &[first, second, mine], &[1, 2, 3, 4]), [4]);
}

/// One pushes while the other takes the last node out as dummy, and links it again.
fn reuse_push<Q: Queue>() {
    let queue = used::<Q>();
    let other = beside(&queue, |queue| {
        let first = queue.pop();
        queue.push(3);
        let second = queue.pop();
        [first, second]
    });
    queue.push(2);
    let [first, second] = other.join().unwrap();
    assert_eq!(first, Some(1));
    assert!(second.is_some(), "it came after its own push");
    account(&*queue, &[first, second], &[1, 2, 3]);
}

/// One pushes into nodes that the other has taken values out of.
fn pushes_after_pops<Q: Queue>() {
    let queue = used::<Q>();
    queue.push(2);
    let other = beside(&queue, |queue| [queue.pop(), queue.pop()]);
    queue.push(3);
    queue.push(4);
    assert_eq!(other.join().unwrap(), [Some(1), Some(2)]);
    account(&*queue, &[Some(1), Some(2)], &[1, 2, 3, 4]);
}

/// One leaves a second segment of two slots while the other takes the first one for use again, or
/// has not yet.
fn frees_while_pushing<Q: Queue>() {
    let queue = Q::default();
    (1..=6).for_each(|number| queue.push(number));
    assert_eq!([(); 3].map(|()| queue.pop()), [1, 2, 3].map(Some));
    let queue = Arc::new(queue);
    let other = beside(&queue, |queue| queue.push(7));
    assert_eq!([queue.pop(), queue.pop()], [Some(4), Some(5)]);
    other.join().unwrap();
    assert_eq!(account(&*queue, &[], &[6, 7]), [6, 7]);
}

fn three_threads<Q: Queue>() {
    let queue = used::<Q>();
    let others = [
        beside(&queue, Q::pop),
        beside(&queue, |queue| {
            queue.push(2);
            None
        }),
    ];
    let mine = queue.pop();
    let [popped, _] = others.map(|thread| thread.join().unwrap());
    assert!(mine == Some(1) || popped == Some(1));
    account(&*queue, &[mine, popped], &[1, 2]);
}

macro_rules! models {
    ($($module:ident: $queue:ty, two $two:literal $(, three $three:literal)? $(, unbounded { $($name:ident: $body:ident;)+ })?;)+) => {$(
        mod $module {
            use super::*;

            models! { [$module $queue, Model::new().preemptions($two)]
                two_threads_push_bounded: two_push;
                a_push_meets_a_pop_bounded: push_and_pop;
                two_threads_pop_bounded: two_pop;
                a_look_meets_a_pop_and_a_push_bounded: look;
                a_first_push_meets_a_pop_bounded: first_push;
                two_threads_push_and_pop_bounded: two_threads;
                reuse_meets_a_slow_pop_bounded: reuse_pop;
                reuse_meets_a_slow_push_bounded: reuse_push;
            }
            $(models! { [$module $queue, Model::new().preemptions($three)]
                three_threads_bounded: three_threads;
            })?
            $(models! { [$module $queue, Model::new()]
                $($name: $body;)+
            })?
        }
    )+};
    ([$module:ident $queue:ty, $model:expr] $($name:ident: $body:ident;)+) => {$(
        #[test]
        fn $name() {
            let name = concat!("queues::", stringify!($module), "::", stringify!($name));
            explore(name, $model.objects(40), $body::<$queue>);
        }
    )+};
}

models! {
    michael_scott_counted: MichaelScottQueue<u32, Counted>, two 2, three 2, unbounded {
        a_push_meets_a_pop: push_and_pop;
        a_first_push_meets_a_pop: first_push;
        a_look_meets_a_pop_and_a_push: look;
    };
    michael_scott_hazard: MichaelScottQueue<u32, Hazard>, two 2, three 1;
    prakash_lee_johnson_counted: PrakashLeeJohnsonQueue<u32, Counted>, two 1, three 1;
    prakash_lee_johnson_hazard: PrakashLeeJohnsonQueue<u32, Hazard>, two 1;
    two_lock: TwoLockQueue<u32, Lock>, two 2, three 2, unbounded {
        a_push_meets_a_pop: push_and_pop;
        a_first_push_meets_a_pop: first_push;
        two_threads_push: two_push;
        two_threads_pop: two_pop;
        pushes_meet_pops: pushes_after_pops;
    };
    segmented: SegmentedQueue<u32, Lock>, two 2, three 2, unbounded {
        a_push_meets_a_pop: push_and_pop;
        a_first_push_meets_a_pop: first_push;
        a_look_meets_a_pop_and_a_push: look;
        two_threads_push: two_push;
        two_threads_pop: two_pop;
        pushes_meet_pops: pushes_after_pops;
        a_push_meets_a_pop_that_frees: frees_while_pushing;
    };
    locked: LockedQueue<u32, Lock>, two 2, three 2, unbounded {
        a_push_meets_a_pop: push_and_pop;
        a_first_push_meets_a_pop: first_push;
        two_threads_push: two_push;
        two_threads_pop: two_pop;
    };
}
