//! A run, as the runtime tells it and as the simulator does.

use std::time::Duration;

use machine::{clock, thread};
use stanchion_activations_simulated::{Metrics, Runtime, RuntimeBuilder, Upcall};
use stanchion_simulator::{Activity, Machine, Run, Simulation, Span};

/// What the clock reads when a run begins.
pub(crate) const EPOCH: u64 = 1_000_000_000;

/// Why a kernel thread left its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Blocked,
    Preempted,
}

/// One time that a carrier was on no processor; in ns of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Off {
    pub(crate) carrier: usize,
    pub(crate) why: Why,
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// What the runtime was told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) upcall: Upcall,
    pub(crate) at: u64,
    pub(crate) latency: Option<u64>,
}

impl Told {
    /// When that happened which it was told of.
    pub(crate) fn cause(&self) -> Option<u64> {
        self.latency.map(|latency| self.at - latency)
    }
}

/// A user-level thread ran there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    pub(crate) carrier: usize,
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// A run.
pub(crate) struct Ran {
    pub(crate) offs: Vec<Off>,
    pub(crate) told: Vec<Told>,
    pub(crate) stays: Vec<Stay>,
    pub(crate) metrics: Metrics,
}

/// Runs a scene in a runtime, whose threads have all ended when the scene has, and checks what holds of any run.
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
        // Whoever was away comes back.
        thread::sleep(Duration::from_millis(2));
        let mut json = Vec::new();
        let trace = runtime.trace().expect("it is traced");
        assert_eq!(trace.left_out(), 0);
        trace.write_chrome(&mut json).expect("memory takes all");
        (began, runtime.metrics(), String::from_utf8(json).expect("text"))
    };
    match Simulation::new(machine).seed(seed).timeline().run(body) {
        Err(failure) => panic!("{name}, seed {seed}: {failure}"),
        Ok(run) => {
            let ran = Ran::new(&run);
            if let Some(wrong) = ran.wrong() {
                panic!("{name}, seed {seed}: {wrong}\n{:#?}", ran.told);
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
        let carrier_of =
            |thread: usize| name_of(thread).strip_prefix("carrier-").map(|it| it.parse().unwrap());
        let spans = run.timeline.as_ref().expect("it was asked for").spans();
        let mut offs = Vec::new();
        for thread in 0..threads.len() {
            let Some(carrier) = carrier_of(thread) else { continue };
            offs.extend(offs_of(carrier, spans.iter().filter(|span| span.thread == thread)));
        }
        let (told, stays) = read(json);
        Self { offs, told, stays, metrics: metrics.clone() }
    }

    /// What was told of that kind.
    pub(crate) fn told_of(&self, upcall: Upcall) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(move |told| told.upcall == upcall)
    }

    /// The times that a carrier was off its processor for that reason.
    pub(crate) fn offs_for(&self, why: Why) -> impl Iterator<Item = &Off> {
        self.offs.iter().filter(move |off| off.why == why)
    }

    /// What was told of the switch at that time.
    pub(crate) fn told_at(&self, upcall: Upcall, cause: u64) -> Option<&Told> {
        self.told_of(upcall).find(|told| told.cause() == Some(cause))
    }

    /// How many threads have begun, or gone on, on another carrier meanwhile: of that which has looked around most often.
    pub(crate) fn looks_meanwhile(&self, off: &Off) -> usize {
        let looks = |carrier| {
            let stays = self.stays.iter().filter(|stay| stay.carrier == carrier);
            stays.filter(|stay| stay.from > off.from && stay.from < off.until).count()
        };
        let others = (0..self.metrics.kernel_threads).filter(|carrier| *carrier != off.carrier);
        others.map(looks).max().unwrap_or(0)
    }

    /// Whether that was in the middle of a thread; what is within a microsecond of its ends may have been in the scheduler.
    pub(crate) fn is_in_thread(&self, off: &Off) -> bool {
        self.stays.iter().any(|stay| {
            stay.carrier == off.carrier && stay.from + 1_000 < off.from && off.until < stay.until
        })
    }

    /// What must not be in any run, if it is there.
    fn wrong(&self) -> Option<String> {
        for (upcall, why) in [(Upcall::Blocked, Why::Blocked), (Upcall::Preempted, Why::Preempted)]
        {
            let mut causes: Vec<_> = self.offs_for(why).map(|off| off.from).collect();
            for told in self.told_of(upcall) {
                let cause = told.cause();
                let Some(place) = causes.iter().position(|from| Some(*from) == cause) else {
                    return Some(format!("{told:?} has no cause, or was told before"));
                };
                causes.swap_remove(place);
            }
        }
        let mut returns: Vec<_> = self.offs.iter().map(|off| off.until).collect();
        for told in self.told_of(Upcall::Unblocked) {
            // One that has been preempted since has no time.
            let Some(cause) = told.cause() else { continue };
            let Some(place) = returns.iter().position(|until| *until == cause) else {
                return Some(format!("{told:?} has no cause, or was told before"));
            };
            returns.swap_remove(place);
        }
        let count = |upcall| self.told_of(upcall).count();
        if count(Upcall::Blocked) != count(Upcall::Unblocked) {
            return Some("not as many are told to be back as were told to be blocked".into());
        }
        let counted = Upcall::ALL.map(|upcall| count(upcall) as u64);
        (counted != self.metrics.upcalls).then(|| "the trace and the metrics differ".into())
    }
}

/// The stretches in which the thread of these spans was on no processor, without the one before its first.
fn offs_of<'a>(carrier: usize, spans: impl Iterator<Item = &'a Span>) -> Vec<Off> {
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
            offs.push(Off { carrier, why, from, until });
        }
        was_off = off && ran;
        ran |= !off;
    }
    offs
}

/// Upcalls and threads' stays, from the trace's lines.
fn read(json: &str) -> (Vec<Told>, Vec<Stay>) {
    let (mut told, mut stays) = (Vec::new(), Vec::new());
    for line in json.lines() {
        let Some(at) = field(line, "\"ts\":").map(nanos) else { continue };
        let upcall = Upcall::ALL
            .into_iter()
            .find(|upcall| line.contains(&format!("\"name\":\"{upcall:?}\"")));
        if let Some(upcall) = upcall {
            let latency =
                field(line, "\"latency_ns\":").map(|it| it.parse().expect("whole nanoseconds"));
            told.push(Told { upcall, at, latency });
        } else if line.contains("\"name\":\"thread ") {
            let carrier = field(line, "\"tid\":").expect("a track").parse().expect("a number");
            let until = at + field(line, "\"dur\":").map(nanos).expect("a length");
            stays.push(Stay { carrier, from: at, until });
        }
    }
    (told, stays)
}

/// What follows that name on the line.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.split_once(name)?.1;
    Some(&rest[..rest.find([',', '}']).unwrap_or(rest.len())])
}

/// The format's microseconds, with three decimals.
fn nanos(micros: &str) -> u64 {
    micros.replace('.', "").parse().expect("microseconds")
}
