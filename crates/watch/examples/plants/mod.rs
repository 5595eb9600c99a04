//! Three planted causes for a worker that does not get back to its queue. The example and the tests
//! share them.

use std::hint::black_box;
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use stanchion_watch::Cause;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// The variable that makes a process of this program keep a processor busy.
pub(crate) const BUSY: &str = "STANCHION_WATCH_BUSY";

/// A process that keeps a processor busy until this is dropped.
pub(crate) struct BusyProcess {
    /// The process.
    child: Child,
    /// Its standard input, which ends it.
    input: Option<ChildStdin>,
}

impl BusyProcess {
    /// Starts this program again, with these arguments, so that it calls [`keep_busy`].
    pub(crate) fn start(arguments: &[&str]) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .env(BUSY, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let output = child.stderr.take();
        // It says when it is on the processor.
        let mut said = [0];
        let said = output.map_or(Ok(0), |mut output| output.read(&mut said))?;
        if said == 0 {
            return Err(io::Error::other("the busy process has ended"));
        }
        Ok(Self { child, input })
    }
}

impl Drop for BusyProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        // An error: it has ended by itself.
        let _ = self.child.wait();
    }
}

/// Keeps the processor of the plants busy until the standard input is closed. Then the process
/// ends.
pub(crate) fn keep_busy() {
    pin();
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        // An error ends it as well.
        let _ = io::stdin().read_to_end(&mut rest);
        std::process::exit(0);
    });
    io::stderr().write_all(b"!").expect("the parent waits for it");
    loop {
        black_box(());
    }
}

/// Pins the calling thread to the processor of the plants.
fn pin() {
    let core = core_affinity::get_core_ids().and_then(|cores| cores.last().copied());
    core.map(core_affinity::set_for_current);
}

/// Lets the calling thread have its processor only if no thread of usual priority wants it.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the arguments are numbers. 0 is the calling thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
    }
}

/// A planted task. It ends when this is dropped.
pub(crate) struct Planted {
    /// Ends a task that computes, when dropped.
    ends: End,
    /// Ends a task that reads.
    writer: Option<PipeWriter>,
    /// Takes the processor away.
    busy: Option<BusyProcess>,
    /// The task.
    task: JoinHandle<()>,
}

/// Sets its flag when it is dropped.
struct End(Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Planted {
    /// Spawns a task that does not get back to the queue, for that cause. `arguments` start the
    /// busy process.
    pub(crate) fn spawn(runtime: &Runtime, cause: Cause, arguments: &[&str]) -> io::Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        let ends = End(Arc::clone(&end));
        let mut planted = (None, None);
        let task = match cause {
            Cause::Blocked => {
                let (mut reader, writer) = io::pipe()?;
                planted.0 = Some(writer);
                // As `std::fs::File::read` does.
                runtime.spawn(async move { drop(reader.read(&mut [0])) })
            }
            Cause::Computing => runtime.spawn(async move { compute(&end) }),
            _ => {
                planted.1 = Some(BusyProcess::start(arguments)?);
                runtime.spawn(async move {
                    give_way();
                    pin();
                    compute(&end);
                })
            }
        };
        Ok(Self { ends, writer: planted.0, busy: planted.1, task })
    }

    /// Ends the task, and waits for its end.
    pub(crate) fn end(self, runtime: &Runtime) {
        drop((self.ends, self.writer, self.busy));
        runtime.block_on(self.task).expect("a planted task does not panic");
    }
}

/// Computes until `ends` is set.
fn compute(ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        (0..1_000).for_each(|number| _ = black_box(number));
    }
}
