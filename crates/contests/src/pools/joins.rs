//! The cost of a fork: the sum of a balanced tree, and Fibonacci numbers, with nothing to do at the
//! leaves.

use std::hint::black_box;

use stanchion_threadpool::strategy::{LocalReadyQueue, SingleLock, Strategy, WorkStealing};
use stanchion_threadpool::{Worker, join};

use super::made::{chili, forte, ours, per_item, rayon};
use super::workload::{Times, Workload};

/// A node of the tree.
struct Node {
    /// The number that is summed.
    value: u64,
    /// The left subtree.
    left: Option<Box<Node>>,
    /// The right subtree.
    right: Option<Box<Node>>,
}

impl Node {
    /// Returns a balanced tree with this many levels, allocated level by level. So the order left
    /// side first and the order right side first touch the memory in mirrored order. A recursive
    /// function would allocate it in one of these orders, which the processor's prefetching rewards
    /// with 20 ns a node.
    fn tree(levels: u32) -> Self {
        let new = || Self { value: 1, left: None, right: None };
        let mut root = new();
        let mut level = vec![&mut root];
        for _ in 1..levels {
            let mut next = Vec::with_capacity(level.len() * 2);
            for node in level {
                node.left = Some(Box::new(new()));
                node.right = Some(Box::new(new()));
                next.extend(
                    [node.left.as_deref_mut(), node.right.as_deref_mut()].into_iter().flatten(),
                );
            }
            level = next;
        }
        root
    }

    /// Returns a tree with about this many nodes.
    fn of(nodes: usize) -> Self {
        Self::tree((nodes + 1).ilog2())
    }
}

/// Returns the forks of `fib(n)`: the next Fibonacci number less one.
fn forks(n: u32) -> usize {
    let (mut this, mut next) = (0, 1);
    for _ in 0..=n {
        (this, next) = (next, this + next);
    }
    this - 1
}

/// Returns the largest `n` for which `fib(n)` forks at most this often.
fn number(items: usize) -> u32 {
    (2..).take_while(|&n| forks(n) <= items).last().unwrap_or(2)
}

/// Defines the two programs for each way to fork, with the argument that is handed down.
macro_rules! programs {
    ($sum:ident, $fib:ident, |$with:ident: $type:ty, $a:ident, $b:ident| $join:expr) => {
        fn $sum($with: $type, node: &Node) -> u64 {
            let $a = move |$with: $type| node.left.as_deref().map_or(0, |half| $sum($with, half));
            let $b = move |$with: $type| node.right.as_deref().map_or(0, |half| $sum($with, half));
            let (left, right) = $join;
            node.value + left + right
        }

        fn $fib($with: $type, n: u32) -> u64 {
            if n < 2 {
                return n.into();
            }
            let $a = move |$with: $type| $fib($with, n - 1);
            let $b = move |$with: $type| $fib($with, n - 2);
            let (a, b) = $join;
            a + b
        }
    };
}

programs!(sum_worker, fib_worker, |with: &Worker, a, b| with.join(a, b));
programs!(sum_free, fib_free, |with: (), a, b| {
    let () = with;
    join(|| a(()), || b(()))
});
programs!(sum_rayon, fib_rayon, |with: (), a, b| {
    let () = with;
    rayon::join(|| a(()), || b(()))
});
programs!(sum_chili, fib_chili, |with: &mut chili::Scope<'_>, a, b| with.join(a, b));
programs!(sum_forte, fib_forte, |with: &forte::Worker, a, b| with.join(a, b));

fn on_worker<S: Strategy, R: Send>(
    threads: usize,
    items: usize,
    body: impl Fn(&Worker) -> R + Sync + Send,
) -> Times {
    let pool = ours::<S>(threads);
    pool.install_with(|worker| {
        black_box(body(worker));
        per_item(items, || {
            black_box(body(worker));
        })
    })
}

fn on_rayon<R: Send>(threads: usize, items: usize, body: impl Fn() -> R + Sync) -> Times {
    rayon(threads).install(|| {
        black_box(body());
        per_item(items, || {
            black_box(body());
        })
    })
}

fn on_chili<R>(threads: usize, items: usize, body: impl Fn(&mut chili::Scope<'_>) -> R) -> Times {
    let (pool, _pinned) = chili(threads);
    let mut scope = pool.scope();
    black_box(body(&mut scope));
    per_item(items, || {
        black_box(body(&mut scope));
    })
}

fn on_forte<R>(threads: usize, items: usize, body: impl Fn(&forte::Worker) -> R) -> Times {
    // The calling thread takes part.
    forte(threads - 1).with_worker(|worker| {
        black_box(body(worker));
        per_item(items, || {
            black_box(body(worker));
        })
    })
}

pub(crate) fn tree() -> Workload {
    fn nodes(items: usize) -> (usize, Node) {
        let tree = Node::of(items);
        ((1 << (items + 1).ilog2()) - 1, tree)
    }
    Workload::new("join, tree sum", 2_097_151, &[1, 2])
        .sampled(0.5)
        .ours("Worker::join", |threads, items| {
            let (items, tree) = nodes(items);
            on_worker::<WorkStealing, _>(threads, items, |worker| sum_worker(worker, &tree))
        })
        .ours("join", |threads, items| {
            let (items, tree) = nodes(items);
            on_worker::<WorkStealing, _>(threads, items, |_| sum_free((), &tree))
        })
        .ours("join, single lock", |threads, items| {
            let (items, tree) = nodes(items);
            on_worker::<SingleLock, _>(threads, items, |_| sum_free((), &tree))
        })
        .ours("join, local ready queues", |threads, items| {
            let (items, tree) = nodes(items);
            on_worker::<LocalReadyQueue, _>(threads, items, |_| sum_free((), &tree))
        })
        .peer("rayon", |threads, items| {
            let (items, tree) = nodes(items);
            on_rayon(threads, items, || sum_rayon((), &tree))
        })
        .peer("chili", |threads, items| {
            let (items, tree) = nodes(items);
            on_chili(threads, items, |scope| sum_chili(scope, &tree))
        })
        .peer("forte", |threads, items| {
            let (items, tree) = nodes(items);
            on_forte(threads, items, |worker| sum_forte(worker, &tree))
        })
}

pub(crate) fn fib() -> Workload {
    Workload::new("join, Fibonacci", forks(30), &[1, 2])
        .sampled(0.5)
        .ours("Worker::join", |threads, items| {
            let n = number(items);
            on_worker::<WorkStealing, _>(threads, forks(n), |worker| fib_worker(worker, n))
        })
        .ours("join", |threads, items| {
            let n = number(items);
            on_worker::<WorkStealing, _>(threads, forks(n), |_| fib_free((), n))
        })
        .peer("rayon", |threads, items| {
            let n = number(items);
            on_rayon(threads, forks(n), || fib_rayon((), n))
        })
        .peer("chili", |threads, items| {
            let n = number(items);
            on_chili(threads, forks(n), |scope| fib_chili(scope, n))
        })
        .peer("forte", |threads, items| {
            let n = number(items);
            on_forte(threads, forks(n), |worker| fib_forte(worker, n))
        })
}
