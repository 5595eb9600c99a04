//! A run, as the runtime tells it and as the simulator does.

use std::time::Duration;

use stanchion_activations_simulated::{Metrics, Runtime, RuntimeBuilder, Upcall};
use stanchion_machine::{clock, thread};
use stanchion_simulator::{Activity, Machine, Run, Simulation, Span};

/// The time on the clock when a run begins.
pub(crate) const EPOCH: u64 = 1_000_000_000;

/// Why a kernel thread left its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Blocked,
    Preempted,
}

/// One time that a worker was on no processor; in ns of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Off {
    /// The number of the worker.
    pub(crate) worker: usize,
    /// The reason why the worker left its processor.
    pub(crate) why: Why,
    /// The time at which it left the processor.
    pub(crate) from: u64,
    /// The time at which it had a processor again.
    pub(crate) until: u64,
}

/// An upcall that the runtime has counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// The kind of the upcall.
    pub(crate) upcall: Upcall,
    /// The time at which the runtime counted it.
    pub(crate) at: u64,
    /// The time from the cause to the count, if the trace has one.
    pub(crate) latency: Option<u64>,
}

impl Counted {
    /// When that happened which it was counted of.
    pub(crate) fn cause(&self) -> Option<u64> {
        self.latency.map(|latency| self.at - latency)
    }
}

/// A user-level thread ran there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    /// The number of the worker that ran the thread.
    pub(crate) worker: usize,
    /// The time at which the thread began or continued there.
    pub(crate) from: u64,
    /// The time at which it left the worker.
    pub(crate) until: u64,
}

/// A run.
pub(crate) struct Ran {
    /// The times for which workers were off their processors, as the simulator recorded them.
    pub(crate) offs: Vec<Off>,
    /// The upcalls that the runtime has counted.
    pub(crate) counted: Vec<Counted>,
    /// The times for which user-level threads ran on workers, as the trace has them.
    pub(crate) stays: Vec<Stay>,
    /// The runtime's own counts at the end.
    pub(crate) metrics: Metrics,
}

/// Runs a scene in a runtime. All its threads have ended when the scene has. Checks what
/// holds of any run.
pub(crate) fn run(
    name: &str,
    seed: u64,
    machine: Machine,
    builder: RuntimeBuilder,
    scene: impl FnOnce(&Runtime) + 'static,
) -> Ran {
    let body = move || {
        let began = clock::monotonic();
        let runtime = builder.build().expect("simulated threads are free");
        scene(&runtime);
        // Workers that were away come back.
        thread::sleep(Duration::from_millis(2));
        let mut json = Vec::new();
        let trace = runtime.trace().expect("it is traced");
        assert_eq!(trace.dropped(), 0);
        trace.write_chrome(&mut json).expect("memory takes all");
        (began, runtime.metrics(), String::from_utf8(json).expect("text"))
    };
    match Simulation::new(machine).seed(seed).timeline().run(body) {
        Err(failure) => panic!("{name}, seed {seed}: {failure}"),
        Ok(run) => {
            let ran = Ran::new(&run);
            if let Some(wrong) = ran.wrong() {
                panic!("{name}, seed {seed}: {wrong}\n{:#?}", ran.counted);
            }
            ran
        }
    }
}

impl Ran {
    fn new(run: &Run<(u64, Metrics, String)>) -> Self {
        let (began, metrics, json) = &run.result;
        assert_eq!(*began, EPOCH, "the run and the trace begin together");
        let threads = &run.statistics.threads;
        let name_of = |thread: usize| threads[thread].name.as_deref().unwrap_or_default();
        let worker_of =
            |thread: usize| name_of(thread).strip_prefix("worker-").map(|it| it.parse().unwrap());
        let spans = run.timeline.as_ref().expect("it was asked for").spans();
        let mut offs = Vec::new();
        for thread in 0..threads.len() {
            let Some(worker) = worker_of(thread) else { continue };
            offs.extend(offs_of(worker, spans.iter().filter(|span| span.thread == thread)));
        }
        let (counted, stays) = read(json);
        Self { offs, counted, stays, metrics: metrics.clone() }
    }

    /// Returns the upcalls of this kind.
    pub(crate) fn counted_of(&self, upcall: Upcall) -> impl Iterator<Item = &Counted> {
        self.counted.iter().filter(move |counted| counted.upcall == upcall)
    }

    /// The times that a worker was off its processor for that reason.
    pub(crate) fn offs_for(&self, why: Why) -> impl Iterator<Item = &Off> {
        self.offs.iter().filter(move |off| off.why == why)
    }

    /// Returns the upcall for the switch at this time.
    pub(crate) fn counted_at(&self, upcall: Upcall, cause: u64) -> Option<&Counted> {
        self.counted_of(upcall).find(|counted| counted.cause() == Some(cause))
    }

    /// Returns the number of threads that began or continued on another worker meanwhile, of the
    /// one that has looked around most often.
    pub(crate) fn looks_meanwhile(&self, off: &Off) -> usize {
        let looks = |worker| {
            let stays = self.stays.iter().filter(|stay| stay.worker == worker);
            stays.filter(|stay| stay.from > off.from && stay.from < off.until).count()
        };
        let others = (0..self.metrics.kernel_threads).filter(|worker| *worker != off.worker);
        others.map(looks).max().unwrap_or(0)
    }

    /// Returns whether that was in the middle of a thread. A time within a microsecond of its ends
    /// may have been in the scheduler.
    pub(crate) fn is_in_thread(&self, off: &Off) -> bool {
        self.stays.iter().any(|stay| {
            stay.worker == off.worker && stay.from + 1_000 < off.from && off.until < stay.until
        })
    }

    /// Returns an error that must not be in any run, if there is one.
    fn wrong(&self) -> Option<String> {
        for (upcall, why) in [(Upcall::Blocked, Why::Blocked), (Upcall::Preempted, Why::Preempted)]
        {
            let mut causes: Vec<_> = self.offs_for(why).map(|off| off.from).collect();
            for counted in self.counted_of(upcall) {
                let cause = counted.cause();
                let Some(place) = causes.iter().position(|from| Some(*from) == cause) else {
                    return Some(format!("{counted:?} has no cause, or was counted before"));
                };
                causes.swap_remove(place);
            }
        }
        let mut returns: Vec<_> = self.offs.iter().map(|off| off.until).collect();
        for counted in self.counted_of(Upcall::Unblocked) {
            // One that has been preempted since has no time.
            let Some(cause) = counted.cause() else { continue };
            let Some(place) = returns.iter().position(|until| *until == cause) else {
                return Some(format!("{counted:?} has no cause, or was counted before"));
            };
            returns.swap_remove(place);
        }
        let count = |upcall| self.counted_of(upcall).count();
        if count(Upcall::Blocked) != count(Upcall::Unblocked) {
            return Some("not as many returns are counted as blocks".into());
        }
        let counts = Upcall::ALL.map(|upcall| count(upcall) as u64);
        (counts != self.metrics.upcalls).then(|| "the trace and the metrics differ".into())
    }
}

/// The stretches in which the thread of these spans was on no processor, without the one before
/// its first.
fn offs_of<'a>(worker: usize, spans: impl Iterator<Item = &'a Span>) -> Vec<Off> {
    let mut offs: Vec<Off> = Vec::new();
    let mut ran = false;
    let mut was_off = false;
    for span in spans {
        let off = span.processor.is_none();
        if off && was_off {
            // Woken, it waits for a processor.
            offs.last_mut().expect("it is off").until = span.end.as_nanos();
        } else if off && ran {
            let why = match span.activity {
                Activity::Ready => Why::Preempted,
                _ => Why::Blocked,
            };
            let (from, until) = (span.start.as_nanos(), span.end.as_nanos());
            offs.push(Off { worker, why, from, until });
        }
        was_off = off && ran;
        ran |= !off;
    }
    offs
}

/// Upcalls and threads' stays, from the trace's lines.
fn read(json: &str) -> (Vec<Counted>, Vec<Stay>) {
    let (mut counted, mut stays) = (Vec::new(), Vec::new());
    for line in json.lines() {
        let Some(at) = field(line, "\"ts\":").map(nanos) else { continue };
        let upcall = Upcall::ALL
            .into_iter()
            .find(|upcall| line.contains(&format!("\"name\":\"{upcall:?}\"")));
        if let Some(upcall) = upcall {
            let latency =
                field(line, "\"latency_ns\":").map(|it| it.parse().expect("whole nanoseconds"));
            counted.push(Counted { upcall, at, latency });
        } else if line.contains("\"name\":\"thread ") {
            let worker = field(line, "\"tid\":").expect("a track").parse().expect("a number");
            let until = at + field(line, "\"dur\":").map(nanos).expect("a length");
            stays.push(Stay { worker, from: at, until });
        }
    }
    (counted, stays)
}

/// Returns the text after this name on the line.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.split_once(name)?.1;
    Some(&rest[..rest.find([',', '}']).unwrap_or(rest.len())])
}

/// The format's microseconds, with three decimals.
fn nanos(micros: &str) -> u64 {
    micros.replace('.', "").parse().expect("microseconds")
}
