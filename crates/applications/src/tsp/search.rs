//! The threads. Each takes a tour, and makes a tour of it for each city that may come next, or
//! completes it.
//!
//! ```text
//! heap     tours with many cities left, the least bound first   taken if the stack is empty
//! stack    tours with few cities left, the last made first      taken first
//! best     the length of the shortest whole tour so far
//! ```
//!
//! The stack is taken first so that whole tours are found early. A tour that cannot be shorter than
//! `best` is thrown away.
//!
//! # Invariants
//!
//! 1. A tour that was made is on the heap, on the stack or in the hands of one thread, and is
//!    counted as [outstanding](crate::outstanding).
//! 2. A tour that is thrown away has a bound no less than `best` was, and `best` only falls. So at
//!    the end no tour that was thrown away is shorter.
//!
//! # Orderings
//!
//! `best` is `Relaxed` throughout: a thread that reads an old value throws away less than it could.
//! The tours themselves come through the structures, and the result through the joining of the
//! threads.

use super::bound::Reduced;
use super::estimate;
use super::instance::Instance;
use super::outcome::{Fault, LEAF, Options, Refused, Run, Scene, Share};
use super::start;
use super::tour::{MOST_CITIES, Tour};
use crate::crew::{self, Affinity, Around, MAX_THREADS, Shared};
use crate::outstanding::{Broken, Outstanding};
use crate::pace::Pace;
use core::fmt;
use core::time::Duration;
use stanchion_lockfree::{ConcurrentStack, Counter, PriorityQueue};
use stanchion_machine::atomic::{AtomicU64, Ordering};
use stanchion_machine::clock;
use stanchion_machine::sync::Arc;

/// Instructions of a bound: for each pair of cities that are left, and for each of these cities.
const PAIR: u64 = 6;
const CITY: u64 = 30;

/// The time from one call of the watcher to the next, in nanoseconds. The clock is read for that
/// only after so many tours.
const WATCH_NS: u64 = 100_000_000;
const WATCH_TOURS: u64 = 16;

/// The structures that the threads share, empty: any types with the traits of `lockfree`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Structures<H, S, C> {
    /// The most promising tours, by their lower bounds.
    pub heap: H,
    /// Tours that are yet to be computed.
    pub stack: S,
    /// Counts the tours that were made.
    pub made: C,
    /// Counts the tours that are done with.
    pub done: C,
}

/// Finds a shortest tour.
///
/// ```
/// use stanchion_applications::tsp::{self, Instance, Options, Structures, Tour};
/// # use stanchion_lockfree::{ConcurrentStack, Counter, PriorityQueue, Progress};
/// # use parking_lot::Mutex;
/// # #[derive(Default)] struct Heap(Mutex<Vec<(u64, Tour)>>);
/// # #[derive(Default)] struct Stack(Mutex<Vec<Tour>>);
/// # #[derive(Default)] struct Count(Mutex<u64>);
/// # impl PriorityQueue for Heap {
/// #     type Key = u64; type Value = Tour; const PROGRESS: Progress = Progress::Blocking;
/// #     fn push(&self, key: u64, tour: Tour) {
/// #         let mut heap = self.0.lock();
/// #         heap.push((key, tour));
/// #         heap.sort_by_key(|e| std::cmp::Reverse(e.0))
/// #     }
/// #     fn pop_min(&self) -> Option<(u64, Tour)> { self.0.lock().pop() }
/// #     fn is_empty(&self) -> bool { self.0.lock().is_empty() }
/// # }
/// # impl ConcurrentStack for Stack {
/// #     type Item = Tour; const PROGRESS: Progress = Progress::Blocking;
/// #     fn push(&self, tour: Tour) { self.0.lock().push(tour) }
/// #     fn pop(&self) -> Option<Tour> { self.0.lock().pop() }
/// #     fn is_empty(&self) -> bool { self.0.lock().is_empty() }
/// # }
/// # impl Counter for Count {
/// #     const PROGRESS: Progress = Progress::Blocking;
/// #     fn add(&self, amount: u64) { *self.0.lock() += amount }
/// #     fn get(&self) -> u64 { *self.0.lock() }
/// # }
/// // Ten cities in a row: there and back again.
/// let row = Instance::new("row", 10, |a, b| (a - b) as u32);
/// let structures = Structures::<Heap, Stack, Count>::default();
/// let run = tsp::run(&row, structures, &Options { threads: 2, ..Options::default() })?;
/// assert_eq!((run.length, run.fault), (18, None));
/// # Ok::<(), tsp::Refused>(())
/// ```
///
/// # Errors
///
/// [`Refused`] names the option that is no good. Or it tells that the instance is too large, with
/// the estimate.
///
/// # Panics
///
/// If a thread cannot be started. With the panic of a thread, if one panics, as it may if a
/// structure does. With a heap or a stack that loses a tour the run does not end.
pub fn run<H, S, C>(
    instance: &Instance,
    structures: Structures<H, S, C>,
    options: &Options,
) -> Result<Run, Refused>
where
    H: PriorityQueue<Key = u64, Value = Tour> + Send + Sync + 'static,
    S: ConcurrentStack<Item = Tour> + Send + Sync + 'static,
    C: Counter + Send + Sync + 'static,
{
    run_with(instance, structures, options, &Around::default(), &mut |_| ())
}

/// Does the same as [`run`] with something [`Around`] the threads, and with a `watch`. The calling
/// thread calls `watch` every 100 ms or so with the state of the search, and once at the end.
///
/// # Errors
///
/// As [`run`].
///
/// # Panics
///
/// As [`run`], and if `around` or `watch` panics.
pub fn run_with<H, S, C>(
    instance: &Instance,
    structures: Structures<H, S, C>,
    options: &Options,
    around: &Around,
    watch: &mut dyn FnMut(Scene),
) -> Result<Run, Refused>
where
    H: PriorityQueue<Key = u64, Value = Tour> + Send + Sync + 'static,
    S: ConcurrentStack<Item = Tour> + Send + Sync + 'static,
    C: Counter + Send + Sync + 'static,
{
    check(instance, options)?;
    let &Options { threads, pinned, bound, head_start, limit, .. } = options;
    let (upper, cities) = start::tour(instance);
    let reduced = Reduced::new(instance, bound, upper);
    let estimate = estimate::bounds(instance, &reduced, upper);
    if estimate > limit as f64 {
        return Err(Refused::Long { cities: instance.cities(), estimate, limit });
    }
    let first = Tour::new();
    let search = Arc::new(Search {
        options: *options,
        around: around.clone(),
        instance: instance.clone(),
        best: Best(AtomicU64::new(if head_start { upper } else { u64::MAX })),
        reduced,
        outstanding: Outstanding::new(1),
        structures,
    });
    search.put(search.reduced.of(&first, instance), first);
    search.structures.made.increment();

    let began = clock::now();
    let workers = crew::run(
        &search,
        threads,
        if pinned { Affinity::RoundRobin } else { Affinity::Free },
        |processor| Worker::work(&search, 0, processor, &mut *watch),
        |search, thread, processor| Worker::work(search, thread, processor, &mut |_| ()),
    );
    let elapsed = Duration::from_nanos(clock::now().nanos_since(began));

    watch(search.scene());
    let found = workers.iter().filter_map(|worker| worker.best.clone());
    let begun = head_start.then_some((upper, cities));
    let (length, tour) = found.chain(begun).min().unwrap_or_default();
    let threads: Vec<Share> = workers.iter().map(|worker| worker.share).collect();
    if threads.iter().any(|share| share.bounds > limit) {
        let looked = threads.iter().map(|share| share.bounds).sum();
        return Err(Refused::Endless { cities: instance.cities(), looked, estimate, limit });
    }
    let fault = search.fault(length, &tour, &threads);
    Ok(Run { length, tour, fault, estimate, elapsed, threads })
}

fn check(instance: &Instance, options: &Options) -> Result<(), Refused> {
    let cities = instance.cities();
    if cities < 3 {
        return Err(Refused::Few(cities));
    }
    if !(1..=MAX_THREADS).contains(&options.threads) {
        return Err(Refused::Threads(options.threads));
    }
    if !LEAF.contains(&options.leaf) {
        return Err(Refused::Leaf(options.leaf));
    }
    if cities > MOST_CITIES {
        return Err(Refused::Many { cities, log10: estimate::tours_log10(cities) });
    }
    Ok(())
}

/// On a line of its own.
#[repr(align(128))]
struct Best(AtomicU64);

/// The data that the threads share.
struct Search<H, S, C> {
    /// The options of the run.
    options: Options,
    /// The wrapper of each thread's work.
    around: Around,
    /// The cities and their distances.
    instance: Instance,
    /// The distances with potentials, for the bound.
    reduced: Reduced,
    /// The shortest whole tour so far. Written by a thread that finds a shorter one.
    best: Best,
    /// The tours that are not done yet.
    outstanding: Outstanding,
    /// The structures under test.
    structures: Structures<H, S, C>,
}

impl<H, S, C> fmt::Debug for Search<H, S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Search").field("instance", &self.instance).finish_non_exhaustive()
    }
}

impl<H, S, C> Shared for Search<H, S, C>
where
    H: Send + Sync + 'static,
    S: Send + Sync + 'static,
    C: Send + Sync + 'static,
{
    fn give_up(&self) {
        self.outstanding.give_up();
    }
}

impl<H, S, C> Search<H, S, C>
where
    H: PriorityQueue<Key = u64, Value = Tour>,
    S: ConcurrentStack<Item = Tour>,
    C: Counter,
{
    fn left(&self, tour: &Tour) -> usize {
        self.instance.cities() - tour.count()
    }

    fn best(&self) -> u64 {
        // Relaxed: see the header.
        self.best.0.load(Ordering::Relaxed)
    }

    fn put(&self, bound: u64, tour: Tour) {
        let left = self.left(&tour);
        if left <= self.options.leaf {
            self.structures.stack.push(tour);
        } else {
            // Of those with the same bound the one with fewer cities left comes first.
            self.structures.heap.push(bound << 8 | left as u64, tour);
        }
    }

    fn scene(&self) -> Scene {
        let best = self.best();
        let Structures { made, done, .. } = &self.structures;
        // In this order, so that no more are done than were made.
        let done = done.get();
        Scene { made: made.get(), done, best: (best != u64::MAX).then_some(best) }
    }

    /// The first thing that is wrong.
    fn fault(&self, length: u64, tour: &[usize], threads: &[Share]) -> Option<Fault> {
        let mut visited = tour.to_vec();
        visited.sort_unstable();
        if !visited.iter().copied().eq(0..self.instance.cities()) {
            return Some(Fault::Tour(tour.to_vec()));
        }
        let found = self.instance.length(tour);
        if found != length {
            return Some(Fault::Length { found, said: length });
        }
        // The first tour was made by no thread.
        let made = 1 + threads.iter().map(|share| share.made).sum::<u64>();
        let taken = threads.iter().map(|share| share.from_heap + share.from_stack).sum();
        if made != taken {
            return Some(Fault::Tours { made, taken });
        }
        let Structures { made: makes, done, .. } = &self.structures;
        [("tours made", makes.get(), made), ("tours done with", done.get(), taken)]
            .into_iter()
            // A counter may be narrower than the threads' own.
            .map(|(what, found, expected)| {
                (what, found, expected & u64::MAX >> (u64::BITS - C::BITS))
            })
            .find(|&(_, found, expected)| found != expected)
            .map(|(what, found, expected)| Fault::Count { what, found, expected })
    }
}

/// The data of one thread.
struct Worker {
    /// The work that it has done.
    share: Share,
    /// The shortest whole tour that it found.
    best: Option<(u64, Vec<usize>)>,
    /// For [`expand`](Self::expand): tours with their bounds.
    next: Vec<(u64, Tour)>,
    /// The pace of a simulated machine.
    pace: Pace,
}

impl Worker {
    fn work<H, S, C>(
        search: &Search<H, S, C>,
        thread: usize,
        processor: Option<usize>,
        watch: &mut dyn FnMut(Scene),
    ) -> Self
    where
        H: PriorityQueue<Key = u64, Value = Tour>,
        S: ConcurrentStack<Item = Tour>,
        C: Counter,
    {
        let share = Share { processor, ..Share::default() };
        let pace = Pace::new(search.options.instruction_ns);
        let next = Vec::with_capacity(MOST_CITIES);
        let mut worker = Self { share, best: None, next, pace };
        search.around.surround(thread, || {
            // `Broken` means that another thread has panicked: the caller gets that thread's panic.
            let _ = worker.tours(search, thread == 0, watch);
        });
        worker
    }

    fn tours<H, S, C>(
        &mut self,
        search: &Search<H, S, C>,
        watches: bool,
        watch: &mut dyn FnMut(Scene),
    ) -> Result<(), Broken>
    where
        H: PriorityQueue<Key = u64, Value = Tour>,
        S: ConcurrentStack<Item = Tour>,
        C: Counter,
    {
        let Structures { heap, stack, .. } = &search.structures;
        let mut watched = clock::now();
        let mut taken = 0_u64;
        let mut take = || {
            let tour = stack.pop().map(|tour| (None, tour));
            tour.or_else(|| heap.pop_min().map(|(key, tour)| (Some(key >> 8), tour)))
        };
        while let Some((bound, tour)) = search.outstanding.next(&mut take) {
            match bound {
                None => self.share.from_stack += 1,
                Some(_) => self.share.from_heap += 1,
            }
            if search.left(&tour) <= search.options.leaf {
                self.complete(search, tour);
                self.next.clear();
            } else if bound.is_some_and(|bound| bound >= search.best()) {
                self.next.clear();
            } else {
                self.expand(search, &tour);
            }
            self.share.made += self.next.len() as u64;
            search.structures.done.increment();
            if !self.next.is_empty() {
                search.structures.made.add(self.next.len() as u64);
            }
            search.outstanding.replace(self.next.len())?;
            if !self.next.is_empty() {
                // The best last: it is on top of the stack then.
                self.next.sort_unstable_by_key(|(bound, _)| core::cmp::Reverse(*bound));
                self.next.drain(..).for_each(|(bound, tour)| search.put(bound, tour));
                search.outstanding.notify();
            }
            taken += 1;
            if self.share.bounds > search.options.limit {
                // All others stop, too.
                search.outstanding.give_up();
            }
            if watches
                && taken.is_multiple_of(WATCH_TOURS)
                && clock::now().nanos_since(watched) >= WATCH_NS
            {
                watch(search.scene());
                watched = clock::now();
            }
        }
        Ok(())
    }

    /// The bound of `tour`, which takes its time.
    fn bound<H, S, C>(&mut self, search: &Search<H, S, C>, tour: &Tour) -> u64 {
        let left = (search.instance.cities() - tour.count()) as u64;
        self.pace.compute(left * (PAIR * left / 2 + CITY));
        self.share.bounds += 1;
        search.reduced.of(tour, &search.instance)
    }

    /// Makes `next` the tours that are worth going on with.
    fn expand<H, S, C>(&mut self, search: &Search<H, S, C>, tour: &Tour)
    where
        H: PriorityQueue<Key = u64, Value = Tour>,
        S: ConcurrentStack<Item = Tour>,
        C: Counter,
    {
        self.next.clear();
        for city in tour.next(&search.instance) {
            let next = tour.with(city, &search.instance);
            let bound = self.bound(search, &next);
            if bound < search.best() {
                self.next.push((bound, next));
            }
        }
    }

    /// Goes through all ways to complete `tour`, with a stack of its own.
    fn complete<H, S, C>(&mut self, search: &Search<H, S, C>, tour: Tour)
    where
        H: PriorityQueue<Key = u64, Value = Tour>,
        S: ConcurrentStack<Item = Tour>,
        C: Counter,
    {
        self.next.clear();
        let mut open = vec![tour];
        while let Some(tour) = open.pop() {
            // Its bound was good when it was put there, and is looked at again: a shorter tour may
            // have been found.
            let bound = self.bound(search, &tour);
            if bound >= search.best() {
                continue;
            }
            if search.left(&tour) == 0 {
                self.whole(search, bound, &tour);
            }
            open.extend(tour.next(&search.instance).map(|city| tour.with(city, &search.instance)));
        }
    }

    /// `tour` is whole, and with the way back as long as `length`.
    fn whole<H, S, C>(&mut self, search: &Search<H, S, C>, length: u64, tour: &Tour) {
        // Relaxed: see the header.
        if search.best.0.fetch_min(length, Ordering::Relaxed) > length {
            self.best = Some((length, tour.cities()));
        }
    }
}
