//! A threaded server with its clients: four connections, with a thread at each end.
//!
//! A client sends requests a batch at a time, and reads the answers. The thread of the server looks
//! the request up in the shared table, works on what it has found, writes a line to the shared log,
//! and answers. The table and the log have a mutex each.
//!
//! The distribution of the requests, and so of the sections:
//!
//! - The key is the smaller of two numbers that are drawn evenly from 1,000.
//! - 89 of 100 requests fetch a value: the section looks it up and copies it.
//! - 10 of 100 store a value of 16·2ᵏ bytes. The probability of k is 2⁻⁽ᵏ⁺¹⁾. The largest k
//!   is 6.
//! - 1 of 100 adds up the values of 64 keys, all in one section.
//! - The work outside is to parse the request, to hash the value, and to format answer and line.
//! - The section of the log copies a line, and writes the log to a file once there are 16 KiB. The
//!   file begins anew after a mebibyte.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Error, Seek as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;

use stanchion_formulas::Random;

use super::mutex::Mutex;
use super::{SEED, halving};

const CONNECTIONS: u64 = 4;
const BATCH: u32 = 50;
const KEYS: u64 = 1_000;
/// The number of keys of which one request adds up the values.
const RANGE: u64 = 64;
/// The bytes that the log keeps in memory.
const KEPT: usize = 16 * 1024;
/// The bytes after which the log's file begins anew.
const LONGEST: u64 = 1024 * 1024;
/// The log's file, in the working directory.
const LOG_FILE: &str = "server.log";

static TABLE: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());
static LOG: Mutex<Log> = Mutex::new(Log { lines: String::new(), file: None, written: 0 });

/// Lines, and the file that they go to.
struct Log {
    /// The lines that are not in the file yet.
    lines: String,
    /// The file, once the server has begun.
    file: Option<File>,
    /// The number of lines so far.
    written: u64,
}

impl Log {
    fn add(&mut self, line: &str) -> std::io::Result<()> {
        self.lines.push_str(line);
        self.written += 1;
        if self.lines.len() >= KEPT { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if let Some(file) = &mut self.file {
            if file.stream_position()? >= LONGEST {
                file.rewind()?;
            }
            file.write_all(self.lines.as_bytes())?;
        }
        self.lines.clear();
        Ok(())
    }
}

/// Serves so many requests of each client. Returns a sentence about that.
pub(super) fn run(requests: u32) -> std::io::Result<String> {
    LOG.lock().file = Some(File::create(LOG_FILE)?);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..CONNECTIONS {
            let (client, server) = UnixStream::pair()?;
            threads.push(scope.spawn(move || ask(client, number, requests)));
            threads.push(scope.spawn(move || serve(server, number)));
        }
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.collect::<std::io::Result<()>>()
    })?;
    let mut log = LOG.lock();
    log.flush()?;
    Ok(format!("{} requests, {} keys", log.written, TABLE.lock().len()))
}

/// Answers the requests of one connection until its client hangs up.
fn serve(connection: UnixStream, number: u64) -> std::io::Result<()> {
    let mut requests = BufReader::new(connection.try_clone()?);
    let mut answers = BufWriter::new(connection);
    let (mut request, mut line) = (String::new(), String::new());
    while requests.read_line(&mut request)? > 0 {
        let result = answer(request.trim_end())
            .ok_or_else(|| Error::other(format!("no request: {request}")))?;
        writeln!(answers, "{result}")?;
        line.clear();
        // Writing to a string does not fail.
        let _ = writeln!(line, "{number} {} bytes: {result}", request.len());
        LOG.lock().add(&line)?;
        // No request is left of this batch: its client waits for the answers.
        if requests.buffer().is_empty() {
            answers.flush()?;
        }
        request.clear();
    }
    Ok(())
}

/// Returns the answer to a request: a hash of the value that was fetched or stored, or a sum.
fn answer(request: &str) -> Option<u64> {
    let mut words = request.split(' ');
    let verb = words.next()?;
    let key = words.next()?.parse().ok()?;
    match verb {
        "fetch" => {
            let found = TABLE.lock().get(&key).cloned();
            Some(found.map_or(0, |value| hash(&value)))
        }
        "store" => {
            let value = words.next()?.to_owned();
            let hash = hash(&value);
            TABLE.lock().insert(key, value);
            Some(hash)
        }
        "sum" => {
            let table = TABLE.lock();
            let lengths = table.range(key..key + RANGE).map(|(_, value)| value.len() as u64);
            Some(lengths.sum())
        }
        _ => None,
    }
}

/// FNV-1a.
fn hash(value: &str) -> u64 {
    value.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Sends so many requests, and reads the answers.
fn ask(connection: UnixStream, number: u64, requests: u32) -> std::io::Result<()> {
    let mut random = Random::new(SEED + number);
    let mut answers = BufReader::new(connection.try_clone()?);
    let mut server = connection;
    let (mut batch, mut answer) = (String::new(), String::new());
    let mut left = requests;
    while left > 0 {
        let count = left.min(BATCH);
        batch.clear();
        (0..count).for_each(|_| add_request(&mut batch, &mut random));
        server.write_all(batch.as_bytes())?;
        for _ in 0..count {
            answer.clear();
            answers.read_line(&mut answer)?;
            if answer.trim_end().parse::<u64>().is_err() {
                return Err(Error::other(format!("no answer: {answer}")));
            }
        }
        left -= count;
    }
    Ok(())
}

/// Draws a request.
fn add_request(batch: &mut String, random: &mut Random) {
    let key = random.below(KEYS).min(random.below(KEYS));
    // Writing to a string does not fail.
    let _ = match random.below(100) {
        0 => writeln!(batch, "sum {key}"),
        1..=10 => {
            let letter = char::from(b'a' + random.below(26) as u8);
            let length = 16 << halving(random, 6);
            writeln!(batch, "store {key} {}", letter.to_string().repeat(length))
        }
        _ => writeln!(batch, "fetch {key}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_from_the_table() {
        // Keys that no client asks for: another test may serve at the same time.
        assert_eq!(answer("fetch 2000"), Some(0));
        assert_eq!(answer("store 2000 aaaa"), Some(hash("aaaa")));
        assert_eq!(answer("fetch 2000"), Some(hash("aaaa")));
        assert_eq!(answer("store 2063 bb"), Some(hash("bb")));
        assert_eq!(answer("sum 2000"), Some(6));
        assert_eq!(answer("sum 2001"), Some(2));
        for wrong in ["", "fetch", "fetch x", "store 1", "drop 1"] {
            assert_eq!(answer(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn requests_are_drawn_as_is_said() {
        let mut random = Random::new(SEED);
        let mut all = String::new();
        (0..10_000).for_each(|_| add_request(&mut all, &mut random));
        let of = |verb: &str| all.lines().filter(|line| line.starts_with(verb)).count();
        assert!((8_800..9_000).contains(&of("fetch ")), "{}", of("fetch "));
        assert!((900..1_100).contains(&of("store ")), "{}", of("store "));
        assert!(all.lines().all(|line| line.len() <= "store 999 ".len() + 16 * 64));
        // The most bytes of a batch fit into the socket, so both ends may write before they read.
        assert!(BATCH as usize * ("store 999 ".len() + 16 * 64 + 1) < 100_000);
    }
}
