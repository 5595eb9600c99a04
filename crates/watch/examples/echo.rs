//! Prints what a watch costs an echo server of tokio over loopback.
//!
//! Two servers run the same load in turn, one of them watched: pairs, of which each begins with the
//! other server than the one before. Printed is the mean of the ratios, with its 95 % interval.
//!
//! `cargo run --release -p stanchion-watch --example echo [PAIRS] [records]`

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
const MESSAGES: usize = 1_500;
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
async fn client(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut bytes = [7; BYTES];
    for _ in 0..MESSAGES {
        stream.write_all(&bytes).await?;
        stream.read_exact(&mut bytes).await?;
    }
    Ok(())
}

/// Returns the time that a server takes for the load.
fn measure(clients: &Runtime, server: &Server) -> io::Result<Duration> {
    let began = Instant::now();
    clients.block_on(async {
        let spawn = |_| tokio::spawn(client(server.address));
        let tasks: Vec<_> = (0..CONNECTIONS).map(spawn).collect();
        for task in tasks {
            task.await??;
        }
        Ok(began.elapsed())
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let pairs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(40_usize);
    let with_records = std::env::args().any(|argument| argument == "records");
    let watch = Watch::builder().switch_records(with_records).build();
    let servers = [Server::start(None)?, Server::start(Some(&watch))?];
    let watching = watch.spawn(Duration::from_secs(1), |sample| {
        std::hint::black_box(sample.to_string());
    })?;
    let clients = Builder::new_current_thread().enable_io().build()?;
    for server in servers.iter().chain(&servers) {
        measure(&clients, server)?;
    }
    let mut ratios = Vec::new();
    let mut plain = Vec::new();
    for pair in 0..pairs.max(2) {
        let first = pair % 2;
        let mut times = [0.0; 2];
        for which in [first, 1 - first] {
            times[which] = measure(&clients, &servers[which])?.as_secs_f64();
        }
        plain.push(times[0]);
        ratios.push(times[1] / times[0]);
    }
    drop(watching);
    for server in servers {
        server.runtime.shutdown_background();
    }
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let margin = QUANTILE * (variance / count).sqrt();
    let rate = (CONNECTIONS * MESSAGES) as f64 * count / plain.iter().sum::<f64>();
    let [lower, upper] = [mean - margin, mean + margin].map(|ratio| (ratio - 1.0) * 100.0);
    println!("{rate:.0} messages a second without a watch");
    println!("watched: {:+.2} % ({lower:+.2} to {upper:+.2}, {count} pairs)", (mean - 1.0) * 100.0);
    Ok(())
}
