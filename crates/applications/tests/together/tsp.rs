//! The travelling salesman: the shortest tour, whatever the threads, the bound and the start; and
//! what happens when a structure is out of order.

use crate::common::structures::{Count, Heap, Stack};
use proptest::prelude::*;
use stanchion_applications::Around;
use stanchion_applications::tsp::{
    self, Bound, Fault, Instance, Options, Refused, Run, STANCHION17, Structures, Tour,
};
use stanchion_lockfree::{ConcurrentStack, Counter, Progress};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

type Simple = Structures<Heap<Tour>, Stack<Tour>, Count>;

#[track_caller]
fn searched(instance: &Instance, options: &Options) -> Run {
    let run = tsp::run(instance, Simple::default(), options).expect("good options");
    assert_eq!(run.fault, None, "{options:?}");
    assert_eq!(run.threads.len(), options.threads);
    run
}

fn cities() -> Instance {
    Instance::parse(STANCHION17.as_bytes()).expect("it is what the program below writes")
}

/// The number from which [`STANCHION17`] is made.
const SEED: u64 = 1_033;

/// Draws points in a square of 700, and roads between them that are up to 19 % longer than the
/// line: the distances of a triangular matrix, row by row, with its diagonal.
fn drawn(mut seed: u64) -> Vec<u32> {
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut next = |below: u64| {
        seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    };
    let points: Vec<(u64, u64)> = (0..17).map(|_| (next(700), next(700))).collect();
    let mut distances = Vec::new();
    for (city, from) in points.iter().enumerate() {
        for to in &points[..city] {
            let (x, y) = (from.0.abs_diff(to.0), from.1.abs_diff(to.1));
            let line = (x * x + y * y).isqrt();
            distances.push((line + line * next(20) / 100) as u32);
        }
        distances.push(0);
    }
    distances
}

/// Makes an instance of drawn distances.
fn instance(distances: &[u32]) -> Instance {
    Instance::new("drawn", 17, |a, b| distances[a * (a + 1) / 2 + b])
}

#[test]
fn the_file_is_what_the_number_gives() {
    let words: Vec<_> = drawn(SEED).iter().map(u32::to_string).collect();
    let rows: Vec<_> = words.chunks(12).map(|row| row.join(" ")).collect();
    let text = format!(
        "NAME: stanchion17\nTYPE: TSP\nCOMMENT: 17 cities, made from the number {SEED}\nDIMENSION: 17\n\
         EDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: LOWER_DIAG_ROW\nEDGE_WEIGHT_SECTION\n{}\n",
        rows.join("\n")
    );
    assert_eq!(STANCHION17, text);
}

/// By dynamic programming (Bellman; Held and Karp 1962): the shortest way from the last city
/// through each set of the others to each city of the set. It shares nothing with the search.
#[test]
fn the_shortest_tour_is_proven() {
    let cities = cities();
    let last = cities.cities() - 1;
    let mut ways = vec![u64::MAX; last << last];
    for city in 0..last {
        ways[(1 << city) * last + city] = u64::from(cities.distance(last, city));
    }
    for set in 1_usize..1 << last {
        for end in (0..last).filter(|end| set >> end & 1 == 1) {
            let way = ways[set * last + end];
            for city in (0..last).filter(|city| set >> city & 1 == 0) {
                let longer = &mut ways[(set | 1 << city) * last + city];
                *longer = (*longer).min(way + u64::from(cities.distance(end, city)));
            }
        }
    }
    let all = ((1 << last) - 1) * last;
    let tours = (0..last).map(|end| ways[all + end] + u64::from(cities.distance(end, last)));
    assert_eq!(tours.min(), Some(2_938));
}

#[test]
fn the_search_finds_the_proven_length() {
    for threads in [1, 2, 5] {
        for head_start in [true, false] {
            for bound in [Bound::Ascent, Bound::Tree] {
                if bound == Bound::Tree && !(head_start && threads == 2) {
                    // Without optimization that takes long, and no other way.
                    continue;
                }
                let options = Options { threads, bound, head_start, ..Options::default() };
                assert_eq!(searched(&cities(), &options).length, 2_938, "{options:?}");
            }
        }
    }
}

/// The cities of `burma14`, with a shortest tour of 3323 according to TSPLIB: degrees and minutes,
/// and their conversion to kilometres.
#[test]
fn the_known_optimum_of_burma14() {
    let text = "NAME: burma14\nTYPE: TSP\nCOMMENT: 14-Staedte in Burma (Zaw Win)\nDIMENSION: 14\nEDGE_WEIGHT_TYPE: GEO\n\
        EDGE_WEIGHT_FORMAT: FUNCTION \nDISPLAY_DATA_TYPE: COORD_DISPLAY\nNODE_COORD_SECTION\n\
        1  16.47 96.10\n 2  16.47 94.44\n 3  20.09 92.54\n 4  22.39 93.37\n 5  25.23 97.24\n 6  22.00 96.05\n 7  20.47 97.02\n\
        8  17.20 96.29\n 9  16.30 97.38\n 10  14.05 98.12\n 11  16.53 97.38\n 12  21.52 95.59\n 13  19.41 97.13\n 14  20.09 94.55\nEOF\n";
    let instance = Instance::parse(text.as_bytes()).expect("it is TSPLIB's own");
    assert_eq!([1, 2, 3, 13].map(|city| instance.distance(0, city)), [153, 510, 706, 398]);
    assert_eq!(searched(&instance, &Options { threads: 2, ..Options::default() }).length, 3_323);
}

/// By trying all tours.
fn shortest(instance: &Instance, cities: &mut Vec<usize>) -> u64 {
    if cities.len() == instance.cities() {
        return instance.length(cities);
    }
    let mut best = u64::MAX;
    for city in 1..instance.cities() {
        if !cities.contains(&city) {
            cities.push(city);
            best = best.min(shortest(instance, cities));
            cities.pop();
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_tour_is_shorter(
        cities in 3_usize..=8,
        distances in prop::collection::vec(prop_oneof![0_u32..4, 0_u32..1_000, Just(u32::MAX)], 28),
        threads in 1_usize..4,
        leaf in 1_usize..9,
        head_start: bool,
        ascent: bool,
    ) {
        let mut given = distances.into_iter();
        let instance = Instance::new("", cities, |_, _| given.next().unwrap_or(0));
        let bound = if ascent { Bound::Ascent } else { Bound::Tree };
        let options = Options { threads, leaf, head_start, bound, ..Options::default() };
        let run = searched(&instance, &options);
        prop_assert_eq!(run.length, shortest(&instance, &mut vec![0]));
    }
}

#[test]
fn tours_are_shared_out_and_counted() {
    let mut scenes = Vec::new();
    let options = Options { threads: 3, head_start: false, ..Options::default() };
    let run =
        tsp::run_with(&cities(), Simple::default(), &options, &Around::default(), &mut |scene| {
            scenes.push(scene)
        });
    let run = run.expect("good options");
    let last = scenes.last().expect("it is told the end");
    assert_eq!((last.made, last.best), (last.done, Some(2_938)));
    let taken: u64 = run.threads.iter().map(|share| share.from_heap + share.from_stack).sum();
    assert_eq!(taken, last.done);
    assert!(run.threads.iter().any(|share| share.from_heap > 0));
    assert!(run.threads.iter().any(|share| share.from_stack > 0));
}

#[test]
fn the_estimate_is_of_the_right_size() {
    let options = Options { threads: 1, ..Options::default() };
    let run = searched(&cities(), &options);
    let bounds: u64 = run.threads.iter().map(|share| share.bounds).sum();
    let ratio = run.estimate / bounds as f64;
    assert!((0.1..10.0).contains(&ratio), "{} for {bounds}", run.estimate);
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let refused = |cities: usize, change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        // As good as random: nothing helps a bound.
        let instance = Instance::new("", cities, |a, b| (a * 7_919 + b * 104_729) as u32 % 1_009);
        let run = tsp::run(&instance, Simple::default(), &options);
        run.expect_err("it is refused").to_string()
    };
    assert_eq!(refused(2, |_| ()), "2 cities: must be at least 3");
    assert_eq!(
        refused(280, |_| ()),
        "280 cities are too many for an exact search: there are about 10^562 tours; the limit is 64 cities"
    );
    assert_eq!(refused(5, |options| options.threads = 0), "0 threads: must be 1 to 64");
    assert_eq!(
        refused(5, |options| options.leaf = 13),
        "13 cities left on the stack: must be 1 to 12"
    );
    let long = refused(20, |options| options.limit = 10);
    assert!(
        long.starts_with("20 cities are too many for an exact search: it is estimated to look at "),
        "{long}"
    );
    assert!(long.ends_with(" hours on one processor; the limit is 1.0e1"), "{long}");
}

/// Without a tour to begin with a search takes longer than is estimated, which supposes one: then
/// the limit holds all the same.
#[test]
fn a_search_that_comes_to_the_limit_is_broken_off() {
    // A search that is short with a tour to begin with.
    let easy = instance(&drawn(1));
    for threads in [1, 3] {
        let free = Options { threads, head_start: false, ..Options::default() };
        let run = searched(&easy, &free);
        let most = run.threads.iter().map(|share| share.bounds).max().expect("a thread");
        let limit = run.estimate as u64 + 1;
        assert!(most > 2 * limit, "{most} for {}", run.estimate);
        let refused = tsp::run(&easy, Simple::default(), &Options { limit, ..free });
        let Err(Refused::Endless { cities: 17, looked, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert!(looked > limit);
    }
}

/// A stack of which one pop misbehaves.
struct OutOfOrder {
    /// The stack proper.
    inside: Stack<Tour>,
    /// The number of pops so far.
    pops: AtomicU32,
    /// Set if a pop panics.
    panics: bool,
}

impl ConcurrentStack for OutOfOrder {
    type Item = Tour;
    const PROGRESS: Progress = Progress::Blocking;

    fn push(&self, tour: Tour) {
        self.inside.push(tour);
    }

    fn pop(&self) -> Option<Tour> {
        let tour = self.inside.pop()?;
        if self.pops.fetch_add(1, Relaxed) == 3 {
            assert!(!self.panics, "the stack is out of order");
            self.inside.push(tour);
        }
        Some(tour)
    }

    fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }
}

fn out_of_order(panics: bool) -> Structures<Heap<Tour>, OutOfOrder, Count> {
    let stack = OutOfOrder { inside: Stack::default(), pops: AtomicU32::new(0), panics };
    Structures { heap: Heap::default(), stack, made: Count::default(), done: Count::default() }
}

#[test]
fn a_panic_of_a_structure_comes_to_the_caller() {
    for threads in [1, 3] {
        let options = Options { threads, head_start: false, ..Options::default() };
        let run = || tsp::run(&cities(), out_of_order(true), &options);
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the stack panics");
        assert_eq!(panic.downcast_ref::<&str>().copied(), Some("the stack is out of order"));
    }
}

#[test]
fn a_tour_that_comes_twice_is_found() {
    let options = Options { head_start: false, ..Options::default() };
    let run = tsp::run(&cities(), out_of_order(false), &options).expect("good options");
    let Some(Fault::Tours { made, taken }) = run.fault else {
        panic!("{:?}", run.fault);
    };
    assert!(taken > 0 && made != taken);
}

/// A counter that forgets the hundredth.
#[derive(Default)]
struct Forgetful(Count);

impl Counter for Forgetful {
    const PROGRESS: Progress = Progress::WaitFree;

    fn add(&self, amount: u64) {
        if self.0.get() != 99 {
            self.0.add(amount);
        } else {
            self.0.add(amount + 1);
        }
    }

    fn get(&self) -> u64 {
        self.0.get()
    }
}

#[test]
fn a_counter_that_miscounts_is_found() {
    let structures = Structures {
        heap: Heap::default(),
        stack: Stack::default(),
        made: Forgetful::default(),
        done: Forgetful::default(),
    };
    let options = Options { head_start: false, ..Options::default() };
    let run = tsp::run(&cities(), structures, &options).expect("good options");
    assert!(matches!(run.fault, Some(Fault::Count { .. })), "{:?}", run.fault);
    assert_eq!(run.length, 2_938);
}

#[test]
fn refused_is_an_error_with_a_cause_that_can_be_matched() {
    let far = Instance::new("", 65, |_, _| 1);
    let refused = tsp::run(&far, Simple::default(), &Options::default()).expect_err("refused");
    assert!(matches!(refused, Refused::Many { cities: 65, .. }));
}
