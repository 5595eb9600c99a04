//! Prints what a watch costs an echo server of tokio over loopback.
//!
//! Two servers run the same load in turn, one of them watched: pairs, of which each begins with the
//! other server than the one before. Each server is started for one run: two that live long may
//! differ by where their threads settled. Printed are the geometric means of the ratios of elapsed
//! time and of processor time (servers and clients together), each with its 95 % interval.
//!
//! `records`: with switch records. `null`: neither is watched, which shows the noise.
//!
//! `cargo run --release -p stanchion-watch --example echo [PAIRS] [records|null]`

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use stanchion_watch::{TokioHooks, Watch};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

/// The connections of the load.
const CONNECTIONS: usize = 16;
/// The messages of one run, on each connection.
const MESSAGES: usize = 1_000;
/// The messages before a run, on each connection.
const WARM_UP: usize = 50;
/// The bytes of a message.
const BYTES: usize = 64;
/// Two-sided 97.5 % quantile of Student's distribution for many degrees of freedom.
const QUANTILE: f64 = 1.99;

/// A server.
struct Server {
    /// Its runtime.
    runtime: Runtime,
    /// Its address.
    address: SocketAddr,
}

impl Server {
    /// Starts a server of two workers.
    fn start(watch: Option<&Watch>) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2).enable_io();
        if let Some(watch) = watch {
            watch.tokio(&mut builder, TokioHooks::new());
        }
        let runtime = builder.build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(echo(stream));
            }
        });
        Ok(Self { runtime, address })
    }
}

/// Sends back what comes.
async fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; BYTES];
    loop {
        let count = stream.read(&mut bytes).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&bytes[..count]).await?;
    }
}

/// Sends messages, each when the last one is back.
async fn client(address: SocketAddr, messages: usize) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut bytes = [7; BYTES];
    for _ in 0..messages {
        stream.write_all(&bytes).await?;
        stream.read_exact(&mut bytes).await?;
    }
    Ok(())
}

/// Returns the time that a new server takes for the load, and the time on processors, in seconds.
fn measure(clients: &Runtime, watch: Option<&Watch>) -> io::Result<[f64; 2]> {
    let server = Server::start(watch)?;
    clients.block_on(load(server.address, WARM_UP))?;
    let (began, used) = (Instant::now(), processor_time());
    clients.block_on(load(server.address, MESSAGES))?;
    let (elapsed, used) = (began.elapsed(), processor_time() - used);
    server.runtime.shutdown_timeout(Duration::from_secs(1));
    Ok([elapsed.as_secs_f64(), used.as_secs_f64()])
}

/// Runs all clients.
async fn load(address: SocketAddr, messages: usize) -> io::Result<()> {
    let spawn = |_| tokio::spawn(client(address, messages));
    let tasks: Vec<_> = (0..CONNECTIONS).map(spawn).collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Returns the time that this process has had on processors. Zero where it is not known.
fn processor_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is writable and of the type asked for.
        let known =
            unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) == 0 };
        if known {
            return Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        }
    }
    Duration::ZERO
}

/// Prints the geometric mean of ratios with its 95 % interval, if there are any.
fn print(what: &str, pairs: &[[f64; 2]]) {
    let ratios = pairs.iter().filter(|pair| pair[0] > 0.0).map(|pair| (pair[1] / pair[0]).ln());
    let ratios: Vec<f64> = ratios.collect();
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let margin = QUANTILE * (variance / count).sqrt();
    let [mean, lower, upper] = [mean, mean - margin, mean + margin].map(|log| log.exp_m1() * 100.0);
    println!("{what} when watched: {mean:+.2} % ({lower:+.2} to {upper:+.2}, {count} pairs)");
}

fn main() -> Result<(), Box<dyn Error>> {
    let pairs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(40_usize);
    let is_said = |word| std::env::args().any(|argument| argument == word);
    let with_records = is_said("records");
    let watch = Watch::builder().switch_records(with_records).build();
    let watched = (!is_said("null")).then_some(&watch);
    let servers = [None, watched];
    let watching = watch.spawn(Duration::from_secs(1), |sample| {
        std::hint::black_box(sample.to_string());
    })?;
    let clients = Builder::new_current_thread().enable_io().build()?;
    // The first runs are slower.
    for watch in servers.iter().chain(&servers) {
        measure(&clients, *watch)?;
    }
    let (mut elapsed, mut used) = (Vec::new(), Vec::new());
    for pair in 0..pairs.max(2) {
        let first = pair % 2;
        let mut times = [[0.0; 2]; 2];
        for which in [first, 1 - first] {
            times[which] = measure(&clients, servers[which])?;
        }
        elapsed.push([times[0][0], times[1][0]]);
        used.push([times[0][1], times[1][1]]);
    }
    drop(watching);
    let plain: f64 = elapsed.iter().map(|pair| pair[0]).sum();
    let rate = (CONNECTIONS * MESSAGES * elapsed.len()) as f64 / plain;
    println!("{rate:.0} messages a second without a watch");
    print("elapsed time", &elapsed);
    print("processor time", &used);
    Ok(())
}
