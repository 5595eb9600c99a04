//! The servers of [figure 2](super::fig2): memcached with four threads, kept busy by eight clients;
//! and [our stand-in](super::stand_in) for it.

use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::external::External;
use super::stand_in;
use stanchion_study::context::Context;
use stanchion_study::units::grouped;

pub(crate) static SERVER: External = External {
    name: "memcached",
    beside: "Ivy (100m)",
    needs: &["memcached"],
    packages: "package memcached",
    prepare: |_, _| Ok(()),
    command: |_| {
        let mut command = ["memcached", "-s", SOCKET, "-t", "4"].map(Into::into).to_vec();
        // SAFETY: asks a number of the kernel.
        if unsafe { libc::geteuid() } == 0 {
            command.extend(["-u", "root"].map(Into::into));
        }
        Ok(command)
    },
    drive: Some(drive),
    what: |context| {
        format!(
            "memcached with 4 threads; for {} s {CLIENTS} clients store and fetch 20 keys, {BATCH} at a time",
            window(context).as_secs()
        )
    },
};

/// Our stand-in, which brings its clients.
pub(crate) static OWN: External = External {
    name: "server (ours)",
    beside: "Ivy (100m)",
    needs: &[],
    packages: "",
    prepare: |_, _| Ok(()),
    command: |context| stand_in::command(stand_in::SERVER, own_requests(context)),
    drive: None,
    what: |context| {
        format!(
            "A server that we wrote, with 4 threads: each of 4 clients sends {} requests to a shared table",
            grouped(own_requests(context).into())
        )
    },
};

fn own_requests(context: &Context) -> u32 {
    context.length(800_000, 3_000_000)
}

const SOCKET: &str = "socket";
const CLIENTS: usize = 8;
const BATCH: usize = 200;
/// The time limit for a server to begin. `stanchion record` may build its shim before.
const START: Duration = Duration::from_secs(120);
/// The time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn window(context: &Context) -> Duration {
    context.window(3_000, 20_000)
}

/// Keeps the server busy.
fn drive(place: &Path, context: &Context, runs: &mut dyn FnMut() -> bool) -> std::io::Result<()> {
    let path = place.join(SOCKET);
    // The first connection that is taken shows that it has begun.
    let began = Instant::now();
    while let Err(error) = UnixStream::connect(&path) {
        if !runs() || began.elapsed() > START || context.go_on().is_err() {
            let seconds = began.elapsed().as_secs();
            return Err(Error::other(format!("it took no connection within {seconds} s: {error}")));
        }
        thread::sleep(Duration::from_millis(20));
    }
    let end = Instant::now() + window(context);
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|_| scope.spawn(|| client(&path, end, context))).collect();
        let ends = clients
            .into_iter()
            .map(|client| client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.collect()
    })
}

/// Stores and fetches until the end, a batch at a time.
fn client(path: &Path, end: Instant, context: &Context) -> std::io::Result<()> {
    let one = |number: usize| {
        let key = number % 20;
        format!("set key{key} 0 0 10\r\n0123456789\r\nget key{key}\r\n")
    };
    let batch: String = (0..BATCH).map(one).collect();
    let mut server = UnixStream::connect(path)?;
    server.set_read_timeout(Some(PATIENCE))?;
    server.set_write_timeout(Some(PATIENCE))?;
    let mut answers = Answers::default();
    let mut piece = [0; 16 * 1024];
    while Instant::now() < end && context.go_on().is_ok() {
        server.write_all(batch.as_bytes())?;
        answers.left = BATCH;
        while answers.left > 0 {
            match server.read(&mut piece)? {
                0 => return Err(Error::new(ErrorKind::UnexpectedEof, "memcached hung up")),
                count => answers.count(&piece[..count]),
            }
        }
    }
    Ok(())
}

/// Counts answers to `get`, which end with a line `END`.
#[derive(Debug, Default)]
struct Answers {
    /// The number of answers that have not come yet.
    left: usize,
    /// The number of bytes of the line's end that have come: an answer may be cut anywhere.
    matched: usize,
}

impl Answers {
    fn count(&mut self, piece: &[u8]) {
        const END: &[u8] = b"\r\nEND\r\n";
        for &byte in piece {
            self.matched = match self.matched {
                matched if byte == END[matched] => matched + 1,
                _ => usize::from(byte == END[0]),
            };
            if self.matched == END.len() {
                self.left = self.left.saturating_sub(1);
                // The end of this line may be the beginning of what comes before the next.
                self.matched = 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_wherever_they_are_cut() {
        let text =
            b"STORED\r\nVALUE key1 0 10\r\n0123456789\r\nEND\r\nSTORED\r\nEND\r\n\r\r\nEND\r\nEND";
        for cut in 0..text.len() {
            let mut answers = Answers { left: 5, matched: 0 };
            answers.count(&text[..cut]);
            answers.count(&text[cut..]);
            assert_eq!(answers.left, 2, "cut at {cut}");
        }
    }
}
