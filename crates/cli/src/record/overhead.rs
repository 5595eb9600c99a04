//! `record --cost`: what recording costs a program, by pairs of runs with and without the shim.

use std::ffi::OsString;
use std::fmt;
use std::mem;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use stanchion_study::output::Output;
use stanchion_study::progress::Progress;
use stanchion_study::student;
use stanchion_study::units::{grouped_count, significant};

use super::log::Events;
use super::run::Way;
use super::table::Table;
use super::{Refusal, cost, run};

/// One run of the program.
struct Run {
    /// The time from its start to its end.
    elapsed: Duration,
    /// The processor time of the program and of the processes that it waited for.
    processor: Duration,
}

/// Runs the program in pairs, and prints what recording costs.
pub(super) fn measure(
    pairs: usize,
    command: impl Fn() -> Command,
    way: Way<'_>,
    orders: bool,
    name: &OsString,
) -> Result<(), Refusal> {
    let cost = cost::measured();
    let once = |recorded: bool| {
        let mut command = command();
        let table = recorded.then(|| Table::of_waits(cost)).transpose()?;
        let ordered = (recorded && orders).then(Table::of_orders).transpose()?;
        let log = if recorded { Events::new(way.limit) } else { None };
        if let Some(table) = &table {
            run::record(&mut command, way, table.path(), log.as_ref().map(Events::path));
            run::record_orders(&mut command, ordered.as_ref().map(Table::path));
        }
        timed(command, name)
    };
    // Not counted: these read the program from the disk.
    let first = once(false)?.elapsed + once(true)?.elapsed;
    let expected = first * u32::try_from(pairs).unwrap_or(u32::MAX);
    let progress = Progress::new(1, expected);
    let part = progress.begin(0, "record --cost", expected);
    part.plan(pairs);
    let mut runs = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        // Each comes first in every second pair, so that neither gains by its place.
        let recorded_first = pair % 2 == 1;
        let one = once(recorded_first)?;
        let other = once(!recorded_first)?;
        runs.push(if recorded_first { (other, one) } else { (one, other) });
        part.step();
    }
    progress.finish();
    let share = |value: fn(&Run) -> Duration| {
        let ratio = |(plain, recorded): &(Run, Run)| {
            value(recorded).as_secs_f64() / value(plain).as_secs_f64().max(1e-9)
        };
        Share::of(&runs.iter().map(ratio).collect::<Vec<_>>())
    };
    let plain = runs.iter().map(|(plain, _)| plain.elapsed).sum::<Duration>() / pairs as u32;
    Output::Stdout.line(format_args!(
        "recording {} costs {} of its time and {} of its processor time ({} of runs, of {plain:.1?} without recording)",
        name.to_string_lossy(),
        share(|run| run.elapsed),
        share(|run| run.processor),
        grouped_count(pairs as u64, "pair"),
    ));
    Ok(())
}

/// Runs the command to its end. Its output goes nowhere.
fn timed(mut command: Command, name: &OsString) -> Result<Run, Refusal> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let path = Path::new(name);
    let failed = |source| Refusal::Start { path: path.to_owned(), source };
    let began = Instant::now();
    let child = command.spawn().map_err(failed)?;
    let (status, processor) = wait(child).map_err(failed)?;
    let elapsed = began.elapsed();
    if status.success() {
        Ok(Run { elapsed, processor })
    } else {
        Err(Refusal::Failed { program: name.clone(), status })
    }
}

/// Waits for the end of the child. Returns its processor time, with that of its own children.
fn wait(child: Child) -> std::io::Result<(ExitStatus, Duration)> {
    let process = child.id() as libc::pid_t;
    let mut status = 0;
    // SAFETY: plain numbers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    loop {
        // SAFETY: writes to `status` and `usage`. `child` is not waited for elsewhere.
        let result = unsafe { libc::wait4(process, &mut status, 0, &mut usage) };
        if result == process {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    Ok((ExitStatus::from_raw(status), time(usage.ru_utime) + time(usage.ru_stime)))
}

/// A share by which something grows, with its 95 % interval.
#[derive(Debug, PartialEq)]
struct Share {
    /// The mean.
    mean: f64,
    /// The lower end.
    low: f64,
    /// The upper end.
    high: f64,
}

impl Share {
    /// Returns the share of the geometric mean of the ratios, at least two.
    fn of(ratios: &[f64]) -> Self {
        let number = ratios.len() as f64;
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let mean = logs.iter().sum::<f64>() / number;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let half = student::quantile(ratios.len()) * (squares / (number - 1.0) / number).sqrt();
        let share = |log: f64| log.exp_m1();
        Self { mean: share(mean), low: share(mean - half), high: share(mean + half) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| significant(100.0 * share);
        let (mean, low, high) = (percent(self.mean), percent(self.low), percent(self.high));
        write!(f, "{mean} % (95 % interval: {low} to {high} %)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_have_no_interval_and_others_contain_the_mean() {
        let same = Share::of(&[1.02; 5]);
        assert!((same.mean - 0.02).abs() < 1e-9 && (same.high - same.low).abs() < 1e-9);
        // Of logarithms -0.1, 0 and 0.1: deviation 0.1, quantile 4.303.
        let share = Share::of(&[(-0.1_f64).exp(), 1.0, 0.1_f64.exp()]);
        let half = 4.303 * 0.1 / 3_f64.sqrt();
        assert!(share.mean.abs() < 1e-9);
        assert!((share.high - half.exp_m1()).abs() < 1e-9, "{share:?}");
        assert!((share.low - (-half).exp_m1()).abs() < 1e-9, "{share:?}");
    }

    #[test]
    fn a_program_that_fails_is_not_measured() {
        let name = OsString::from("false");
        let found = timed(Command::new("false"), &name);
        assert!(matches!(found, Err(Refusal::Failed { .. })));
        let run = timed(Command::new("true"), &OsString::from("true")).unwrap();
        assert!(run.elapsed > Duration::ZERO);
    }
}
