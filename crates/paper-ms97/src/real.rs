//! The structures on this computer.
//!
//! A process is a thread here: one on each processor, pinned. The pseudo-scheduler plays the other
//! applications of a level, as in the paper ([`stanchion_multiprogramming`]).

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stanchion_applications::Around;
use stanchion_formulas::Random;
use stanchion_machine::topology::pin;
use stanchion_multiprogramming::Multiprogramming;

use super::grid::{Cell, Grid, Kind, LEVELS, MILLION, Ratio, Setting};
use stanchion_study::context::{Context, Stop};
use stanchion_study::measure::{Precision, Repeated, StartLine, median};
use stanchion_study_programs::ms97::programs;
pub(super) use stanchion_study_programs::ms97::programs::{
    OVER_QUEUES, OVER_STACKS, Program, SALESMEN,
};
pub(super) use stanchion_study_programs::ms97::rows::{
    BASE, COUNTERS, HEAPS, QUEUES, Row, STACKS, Subject,
};

/// "Every process spends 6 µs (± 10% randomization) spinning in an empty loop after performing
/// every operation."
pub(super) const REST: Duration = Duration::from_micros(6);

/// Measures `rows`, and `peers` after them, each structure with `entries` in it at first, until the
/// ratios that decide are known to `precision`.
pub(super) fn run(
    context: &Context,
    (rows, peers): (&[Row], &[Row]),
    entries: usize,
    precision: Precision,
    deciding: &[Ratio],
) -> Result<(Grid, Repeated), Stop> {
    let rows: Vec<&Row> = rows.iter().chain(peers).collect();
    // Five quanta of 10 ms, or fifty.
    let turns = context.pick(4_000, 40_000);
    let rest = Loop::lasting(REST);
    let kinds = rows.iter().map(|row| (row.name, row.kind)).collect();
    repeat(context, kinds, precision, deciding, |others, setting| {
        measure(context, others, rows[setting.row], setting, (turns, rest), entries)
    })
}

/// Measures `programs`, each of them once for every level and number of processors, and then again.
pub(super) fn run_programs(
    context: &Context,
    programs: &[Program],
    precision: Precision,
    deciding: &[Ratio],
) -> Result<(Grid, Repeated), Stop> {
    let kinds = programs.iter().map(|program| (program.name, program.kind)).collect();
    let (grid, repeated) = repeat(context, kinds, precision, deciding, |others, setting| {
        measure_program(others, &programs[setting.row], setting, context.seed)
    })?;
    Ok((grid.of("one run of the program"), repeated))
}

/// Measures all settings of `rows` by `measure`, again and again.
fn repeat(
    context: &Context,
    rows: Vec<(&'static str, Kind)>,
    precision: Precision,
    deciding: &[Ratio],
    mut measure: impl FnMut(&Arc<Multiprogramming>, Setting) -> Result<Cell, Stop>,
) -> Result<(Grid, Repeated), Stop> {
    let counts = context.within_processors();
    let settings = Grid::settings(rows.len(), &counts);
    let all = context.processors.len();
    // With one processor no process waits for another, and nothing is judged.
    let deciding = if all < 2 { &[] } else { deciding };
    let decides = |setting: Setting| deciding.iter().any(|ratio| ratio.uses(setting, all));
    let number = settings.iter().filter(|&&setting| decides(setting)).count();
    context.plan(precision.steps(settings.len(), number));
    let mut seen: Vec<Vec<Cell>> = settings.iter().map(|_| Vec::new()).collect();
    let grid = |cells: Vec<Cell>| Grid::new(rows.clone(), counts.clone(), BASE, cells);
    // All structures run in turn and then again, so that a drift meets all alike.
    let repeated = precision.repeat(|round| {
        for level in LEVELS {
            let chosen =
                |setting: Setting| setting.level == level && round.measures(decides(setting));
            if !settings.iter().any(|&setting| chosen(setting)) {
                continue;
            }
            let others = Multiprogramming::level(level as u32).start();
            let others = Arc::new(others.map_err(|refused| Stop::Failed(refused.to_string()))?);
            for (&setting, cells) in settings.iter().zip(&mut seen) {
                if chosen(setting) {
                    cells.push(measure(&others, setting)?);
                    context.step()?;
                }
            }
        }
        // The cells that decide are this round's.
        let last = grid(seen.iter().map(|cells| cells[cells.len() - 1]).collect());
        Ok(deciding.iter().map(|&ratio| last.ratio(ratio)).collect())
    })?;
    let cells = seen.iter().map(|repeats| middle(repeats)).collect();
    Ok((grid(cells).with_runs(&seen), repeated))
}

fn measure_program(
    others: &Arc<Multiprogramming>,
    program: &Program,
    setting: Setting,
    seed: u64,
) -> Result<Cell, Stop> {
    // The time granted to all threads, and the time for which they ran.
    let had = Arc::new(Mutex::new((Duration::ZERO, Duration::ZERO)));
    let around = {
        let (others, had) = (others.clone(), had.clone());
        Around::new(move |_, work| {
            let member = others.join().ok();
            let began = Instant::now();
            work();
            let all = began.elapsed();
            let granted = member.map_or(all, |member| member.account().granted);
            let mut had = had.lock().unwrap_or_else(PoisonError::into_inner);
            had.0 += granted.min(all);
            had.1 += all;
        })
    };
    let setup = programs::Setup {
        numbers: 500_000,
        threads: setting.processors,
        seed,
        instruction_ns: 0,
        around,
    };
    let elapsed = (program.run)(&setup)
        .map_err(|wrong| Stop::Failed(format!("{}: {wrong}", program.name)))?;
    let (granted, all) = *had.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Cell { elapsed: elapsed.as_secs_f64(), granted: granted.as_secs_f64() / all.as_secs_f64() })
}

/// Returns the medians.
fn middle(repeats: &[Cell]) -> Cell {
    let of = |value: fn(&Cell) -> f64| median(repeats.iter().map(value).collect());
    Cell { elapsed: of(|cell| cell.elapsed), granted: of(|cell| cell.granted) }
}

/// One process's part.
struct Lap {
    /// The time of its first turn.
    began: Instant,
    /// The time after its last turn.
    ended: Instant,
    /// The processor time that it had in between.
    granted: Duration,
}

fn measure(
    context: &Context,
    others: &Multiprogramming,
    row: &Row,
    setting: Setting,
    (turns, rest): (u64, Loop),
    entries: usize,
) -> Result<Cell, Stop> {
    let subject = (row.make)(entries);
    let line = StartLine::default();
    let processes = setting.processors;
    let laps: Vec<Lap> = thread::scope(|scope| {
        let crew: Vec<_> = (0..processes)
            .map(|index| {
                let (subject, line) = (&*subject, &line);
                scope.spawn(move || {
                    let place = pin(context.processors[index]);
                    let member = others.join().map_err(|refused| refused.to_string());
                    line.wait();
                    let _place = place.map_err(|error| error.to_string())?;
                    let member = member?;
                    let before = member.account().granted;
                    let began = Instant::now();
                    process(subject, turns, rest, index as u64);
                    let ended = Instant::now();
                    Ok(Lap { began, ended, granted: member.account().granted - before })
                })
            })
            .collect();
        line.open_when(processes);
        let join = |thread: thread::ScopedJoinHandle<'_, Result<Lap, String>>| {
            thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        };
        crew.into_iter().map(join).collect::<Result<_, _>>()
    })
    .map_err(Stop::Failed)?;
    let began = laps.iter().map(|lap| lap.began).min().expect("there is a process");
    let elapsed = |lap: &Lap| (lap.ended - began).as_secs_f64();
    let longest = laps.iter().map(elapsed).fold(0.0, f64::max);
    let granted: f64 = laps.iter().map(|lap| lap.granted.as_secs_f64()).sum();
    let had: f64 = laps.iter().map(|lap| (lap.ended - lap.began).as_secs_f64()).sum();
    let all = (processes as u64 * turns) as f64;
    Ok(Cell { elapsed: longest * MILLION / all, granted: granted / had })
}

fn process(subject: &dyn Subject, turns: u64, rest: Loop, seed: u64) {
    let mut random = Random::new(seed);
    for _ in 0..turns {
        let key = random.next_u64();
        subject.turn(key, &mut || rest.run(&mut random));
    }
}

/// An empty loop that computes for a given time. It counts its turns and reads no clock: a process
/// that is stopped in it has not computed meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    /// The turns of the whole loop.
    turns: u64,
}

impl Loop {
    /// Makes a loop that lasts for `time` on this processor if undisturbed.
    pub(super) fn lasting(time: Duration) -> Self {
        const TRIED: u64 = 100_000;
        let once = || {
            let begin = Instant::now();
            Self { turns: TRIED }.turn(TRIED);
            begin.elapsed().as_secs_f64()
        };
        // The fastest was disturbed least.
        let fastest = (0..20).map(|_| once()).fold(f64::INFINITY, f64::min);
        Self { turns: (time.as_secs_f64() / fastest * TRIED as f64) as u64 }
    }

    /// Runs the whole loop.
    pub(super) fn whole(self) {
        self.turn(self.turns);
    }

    /// Runs the loop, a tenth longer or shorter at most.
    pub(super) fn run(self, random: &mut Random) {
        self.turn(self.length(random));
    }

    fn length(self, random: &mut Random) -> u64 {
        let tenth = self.turns / 10;
        self.turns - tenth + random.below(2 * tenth + 1)
    }

    fn turn(self, turns: u64) {
        for turn in 0..turns {
            black_box(turn);
        }
    }
}

/// Returns the notes on the measurement, for the reader of a figure.
pub(super) fn notes(grid: &Grid, repeated: &Repeated) -> Vec<String> {
    vec![
        format!(
            "The paper's figure ends at 11 processors, this one at {}. Elapsed times are scaled to a million turns; medians of {}.",
            grid.processors(),
            repeated.words()
        ),
        "At levels 2 and 3 a signal stops each thread for one or two quanta of 10 ms after each of its own, wherever it is. Its handler sleeps where the paper's spun. Threads are pinned, \
         one on each processor, so only programs without a part in the measurement run while a thread is stopped."
            .to_owned(),
        "Ordinary and preemption-safe locks are the same test-and-test-and-set lock with exponential backoff of at most 30 µs. The latter asks not to be preempted, which the pseudo-scheduler \
         grants for 1 ms (Edler et al.)."
            .to_owned(),
        "Peers are rows after the paper's and ours. The channel of std has one consumer, so it cannot take part."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_within_a_tenth() {
        let rest = Loop { turns: 1_000 };
        let mut random = Random::new(7);
        let lengths: Vec<u64> = (0..1_000).map(|_| rest.length(&mut random)).collect();
        assert!(lengths.iter().all(|length| (900..=1_100).contains(length)));
        assert!(
            lengths.iter().any(|&length| length < 950)
                && lengths.iter().any(|&length| length > 1_050)
        );
    }

    #[test]
    fn every_row_does_its_turns() {
        for row in [QUEUES, STACKS, HEAPS, COUNTERS].into_iter().flatten() {
            for entries in [0, 32] {
                let subject = (row.make)(entries);
                let mut rests = 0;
                (0..100).for_each(|key| subject.turn(key, &mut || rests += 1));
                assert!(rests == 100 || rests == 200, "{}: {rests}", row.name);
            }
        }
    }
}
