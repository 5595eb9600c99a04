//! The size of a stack that threads commonly need: the smallest with which each of some tasks ends,
//! found by trying.
//!
//! ```text
//! cargo run --manifest-path examples/stack_needs/Cargo.toml [--release]
//! ```
//!
//! Then the cost of a parked thread on stacks of some sizes. Each try is a process of its own,
//! because an overflow ends it.

use std::backtrace::Backtrace;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::ToSocketAddrs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use stanchion_activations::{Runtime, park};

/// A task, with its name.
type Task = (&'static str, fn());

const TASKS: [Task; 13] = [
    ("nothing", || ()),
    ("std: format numbers, print to standard error", print),
    ("std: a panic that is caught, with a hook that prints", panics),
    ("std: a backtrace with names", backtrace),
    ("std: resolve a name (getaddrinfo)", resolve),
    ("std: sort and hash", sort),
    ("regex: compile and match, with Unicode classes", regex),
    ("regex: a group in a group, 20 deep", || regex_deep(20)),
    ("regex: the same, 100 deep", || regex_deep(100)),
    ("serde_json: parse and print, 3 deep", json),
    ("serde_json: the same, 127 deep, the most that it parses", json_deep),
    ("flate2: deflate and inflate 1 MiB", flate),
    ("toml: parse and print, 60 deep", toml_deep),
];

/// Sizes of stacks that are tried, in KiB.
const SIZES: [usize; 17] =
    [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096];

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, task, kib] = &arguments[..] {
        let kib: usize = kib.parse().unwrap();
        let runtime = Runtime::builder().processors(1).stack_size(kib << 10).build().unwrap();
        return match task.parse::<usize>() {
            Ok(task) => runtime.run(TASKS[task].1),
            Err(_) => cost(&runtime, kib),
        };
    }
    println!("smallest stack in KiB, {}", if cfg!(debug_assertions) { "debug" } else { "release" });
    for (number, (name, _)) in TASKS.iter().enumerate() {
        match SIZES.into_iter().find(|&kib| ends(number, kib)) {
            Some(kib) => println!("{kib:6}  {name}"),
            None => println!("  more  {name}"),
        }
    }
    println!("what each of {PARKED} parked threads takes");
    println!("   KiB      resident   page tables      time");
    for kib in [16, 64, 256, 512, 1024, 2048, 8192] {
        let child = [String::from("cost"), kib.to_string()];
        Command::new(std::env::current_exe().unwrap()).args(child).status().unwrap();
    }
}

/// The number of threads that are parked at a time.
const PARKED: usize = 20_000;

/// Prints what a thread costs that has parked on a stack of that size.
fn cost(runtime: &Runtime, kib: usize) {
    let [resident, tables] = memory();
    let started = Instant::now();
    let begun = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..PARKED)
        .map(|_| {
            let begun = begun.clone();
            runtime.spawn(move || {
                begun.fetch_add(1, Ordering::Relaxed);
                park();
            })
        })
        .collect();
    while begun.load(Ordering::Relaxed) < PARKED {
        std::thread::yield_now();
    }
    let time = started.elapsed() / PARKED as u32;
    let [resident_now, tables_now] = memory();
    let each = |now: usize, before: usize| (now - before) * 1024 / PARKED;
    let (resident, tables) = (each(resident_now, resident), each(tables_now, tables));
    println!("{kib:6} {resident:11} B {tables:11} B {time:>9.2?}");
    threads.iter().for_each(|thread| thread.thread().unpark());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Returns the resident memory and the page tables of this process, in KiB.
fn memory() -> [usize; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmRSS:", "VmPTE:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    })
}

/// Returns whether the task ends with a stack of that size.
fn ends(task: usize, kib: usize) -> bool {
    Command::new(std::env::current_exe().unwrap())
        .args([task.to_string(), kib.to_string()])
        .env("RUST_BACKTRACE", "1")
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

fn print() {
    let mut text = String::new();
    write!(text, "{:e} {:?} {:>20.7}", 1.0e-300, f64::MAX, std::f64::consts::PI).unwrap();
    eprintln!("{text}");
    std::io::stderr().flush().unwrap();
}

fn panics() {
    assert!(std::panic::catch_unwind(|| panic!("{}", 1.5)).is_err());
}

fn backtrace() {
    assert!(!Backtrace::force_capture().to_string().is_empty());
}

fn resolve() {
    // It may be unknown here: what counts is the way there.
    let _ = ("localhost", 80).to_socket_addrs().map(Iterator::count);
}

fn sort() {
    let mut numbers: Vec<u64> = (0..10_000_u64).map(|n| n * 40_503 % 65_537).collect();
    numbers.sort();
    numbers.sort_unstable();
    assert!(numbers.into_iter().collect::<std::collections::HashSet<_>>().len() > 1);
}

fn regex() {
    let pattern = r"(?i)^(?:\p{Greek}+|\w+[-.]?)*@(?P<host>(?:[\p{L}\d-]+\.)+\p{L}{2,})$";
    let regex = regex::Regex::new(pattern).unwrap();
    assert!(regex.is_match("someone@example.org"));
    assert!(!regex.is_match(&"a.".repeat(1_000)));
}

fn regex_deep(depth: usize) {
    let pattern = format!("{}a{}", "(".repeat(depth), ")*".repeat(depth));
    let regex = regex::RegexBuilder::new(&pattern).nest_limit(250).build().unwrap();
    assert!(regex.captures("aaa").is_some());
}

fn parse_json(depth: usize) {
    let text = format!("{}{{\"a\":[1.5,\"b\"]}}{}", "[".repeat(depth), "]".repeat(depth));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.to_string(), text);
    assert!(format!("{value:?}").len() > depth);
    assert_eq!(value.clone(), value);
}

fn json() {
    parse_json(1);
}

fn json_deep() {
    parse_json(125);
}

fn flate() {
    let data: Vec<u8> = (0..1_u32 << 18).flat_map(|n| (n / 7).to_le_bytes()).collect();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&data).unwrap();
    let packed = encoder.finish().unwrap();
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == data);
}

fn toml_deep() {
    let text = format!("a = {}1{}\n[b.c.d]\ne = 1.5\n", "[".repeat(60), "]".repeat(60));
    let table: toml::Table = text.parse().unwrap();
    assert!(table.to_string().contains("1.5"));
    assert!(format!("{table:?}").len() > 60);
}
