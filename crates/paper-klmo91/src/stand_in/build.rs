//! A parallel build: four workers take jobs from a queue, compile files and link programs.
//!
//! To compile a file, a worker makes its text and reads the headers that it includes, from the
//! shared cache, or anew if no other worker has. It enters the file's names into the shared table
//! of symbols, a line at a time. Eight files are a program. Once all eight are compiled, it can be
//! linked: the symbols of the eight are put together, sorted, and made unique. The queue, the cache
//! and the table have a mutex each.
//!
//! The distribution of the input, and so of the sections:
//!
//! - A file has 20·2ᵏ lines. The probability of k is 2⁻⁽ᵏ⁺¹⁾, and k is 5 at most.
//! - A line has 2 to 9 names, evenly. The section of the table enters one line.
//! - A name is the smaller of two numbers that are drawn evenly from 5,000.
//! - A file includes 4 to 12 headers, evenly, of 40. A header has 30 lines. The section of the
//!   cache is one look, or the entry of one header.
//! - The section of the queue takes one job, or enters one result.
//! - The work outside is to make a file's text, to split it into names, and to sort symbols.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::thread;

use stanchion_formulas::Random;

use super::mutex::{Condition, Mutex};
use super::{SEED, halving};

const WORKERS: usize = 4;
/// The number of files of a program.
const PARTS: usize = 8;
const HEADERS: u64 = 40;
const NAMES: u64 = 5_000;

/// The symbols of a compiled file, by their numbers.
type Object = Arc<Vec<u32>>;

static QUEUE: Mutex<Queue> = Mutex::new(Queue::new());
static CHANGED: Condition = Condition::new();
static CACHE: Mutex<BTreeMap<u64, Object>> = Mutex::new(BTreeMap::new());
static SYMBOLS: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());

/// A job that may be done at once.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Job {
    Compile(usize),
    Link(Vec<Object>),
}

/// The jobs of a build.
struct Queue {
    /// The jobs that wait for nothing.
    ready: VecDeque<Job>,
    /// The objects that have been made, program by program.
    objects: Vec<Vec<Object>>,
    /// The number of files of each program.
    parts: Vec<usize>,
    /// The number of programs that have not been linked.
    left: usize,
    /// The symbols of all programs that have been linked.
    linked: usize,
}

impl Queue {
    const fn new() -> Self {
        Self { ready: VecDeque::new(), objects: Vec::new(), parts: Vec::new(), left: 0, linked: 0 }
    }

    /// Returns the jobs for so many files.
    fn of(files: usize) -> Self {
        let programs = files.div_ceil(PARTS);
        Self {
            ready: (0..files).map(Job::Compile).collect(),
            objects: vec![Vec::new(); programs],
            parts: (0..programs).map(|program| PARTS.min(files - program * PARTS)).collect(),
            left: programs,
            linked: 0,
        }
    }

    /// Enters a compiled file. With the last file of a program, the program can be linked.
    fn compiled(&mut self, file: usize, object: Object) {
        let program = file / PARTS;
        self.objects[program].push(object);
        if self.objects[program].len() == self.parts[program] {
            let objects = std::mem::take(&mut self.objects[program]);
            self.ready.push_front(Job::Link(objects));
        }
    }

    fn linked(&mut self, symbols: usize) {
        self.left -= 1;
        self.linked += symbols;
    }
}

/// Compiles so many files and links them. Returns a sentence about that.
pub(super) fn run(files: u32) -> String {
    *QUEUE.lock() = Queue::of(files as usize);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let (programs, symbols) = (files.div_ceil(PARTS as u32), SYMBOLS.lock().len());
    format!("{programs} programs with {} of {symbols} symbols", QUEUE.lock().linked)
}

/// Does jobs until all programs are linked.
fn work() {
    while let Some(job) = next() {
        match job {
            Job::Compile(file) => {
                let object = compile(file as u64);
                QUEUE.lock().compiled(file, object);
            }
            Job::Link(objects) => {
                let symbols = link(&objects);
                QUEUE.lock().linked(symbols);
            }
        }
        CHANGED.wake_all();
    }
}

/// Takes a job. Returns `None` if no program is left.
fn next() -> Option<Job> {
    let mut queue = QUEUE.lock();
    loop {
        if queue.left == 0 {
            return None;
        }
        match queue.ready.pop_front() {
            Some(job) => return Some(job),
            // Other workers do the last compilations.
            None => CHANGED.wait(&mut queue),
        }
    }
}

fn compile(file: u64) -> Object {
    let mut random = Random::new(SEED + file);
    let mut object = Vec::new();
    for _ in 0..4 + random.below(9) {
        object.extend_from_slice(&included(random.below(HEADERS)));
    }
    let lines = 20 << halving(&mut random, 5);
    enter(&text(&mut random, lines), &mut object);
    Arc::new(object)
}

/// Returns the symbols of a header.
fn included(header: u64) -> Object {
    if let Some(known) = CACHE.lock().get(&header) {
        return known.clone();
    }
    // Another worker may do the same meanwhile; the header is the same.
    let mut random = Random::new(!header);
    let mut symbols = Vec::new();
    enter(&text(&mut random, 30), &mut symbols);
    CACHE.lock().entry(header).or_insert(Arc::new(symbols)).clone()
}

/// Draws a text of so many lines.
fn text(random: &mut Random, lines: u32) -> String {
    let mut text = String::new();
    for _ in 0..lines {
        for _ in 0..2 + random.below(8) {
            let name = random.below(NAMES).min(random.below(NAMES));
            // Writing to a string does not fail.
            let _ = write!(text, "name{name} += ");
        }
        text.push_str("1;\n");
    }
    text
}

/// Enters the names of a text into the table of symbols, and their numbers into the object.
fn enter(text: &str, object: &mut Vec<u32>) {
    for line in text.lines() {
        let words = line.split(|c: char| !c.is_alphanumeric());
        let names = words.filter(|word| word.starts_with(char::is_alphabetic));
        let names: Vec<&str> = names.collect();
        let mut symbols = SYMBOLS.lock();
        for name in names {
            let number = match symbols.get(name) {
                Some(&number) => number,
                None => {
                    let number = symbols.len() as u32;
                    symbols.insert(name.to_owned(), number);
                    number
                }
            };
            object.push(number);
        }
    }
}

/// Returns the number of different symbols.
fn link(objects: &[Object]) -> usize {
    let mut symbols: Vec<u32> = objects.iter().flat_map(|object| object.iter().copied()).collect();
    symbols.sort_unstable();
    symbols.dedup();
    symbols.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_linked_once_its_files_are_compiled() {
        let mut queue = Queue::of(PARTS + 1);
        assert_eq!((queue.ready.len(), queue.left), (PARTS + 1, 2));
        queue.ready.clear();
        let object = |number| Arc::new(vec![number]);
        for file in 1..PARTS {
            queue.compiled(file, object(file as u32));
            assert!(queue.ready.is_empty(), "{file}");
        }
        // The second program has one file.
        queue.compiled(PARTS, object(100));
        assert_eq!(queue.ready.pop_front(), Some(Job::Link(vec![object(100)])));
        queue.compiled(0, object(1));
        let Some(Job::Link(objects)) = queue.ready.pop_front() else { panic!("all are compiled") };
        // Two of the eight have the same symbol.
        assert_eq!((objects.len(), link(&objects)), (PARTS, PARTS - 1));
        queue.linked(7);
        queue.linked(1);
        assert_eq!((queue.left, queue.linked), (0, 8));
    }

    #[test]
    fn a_build_ends_and_has_the_same_symbols_each_time() {
        let said = run(20);
        assert!(said.starts_with("3 programs with "), "{said}");
        assert_eq!(run(20), said);
    }
}
