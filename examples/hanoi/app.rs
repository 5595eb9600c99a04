//! Arguments to exit code, with the streams handed in, so that tests can look at them.

use super::report::{self, Report};
use crate::{Choice, Program, bar};
use clap::{Parser, value_parser};
use lock_api::RawMutex;
use stanchion_applications::hanoi::{self, DISKS, MAX_THREADS, Options, PEGS, Refused, Run, Scene};
use std::ffi::OsString;
use std::io::{self, Write};

/// Moves the disks of Hanoi from peg to peg on many threads, with locks of your choice, and says
/// how long they waited.
///
/// Each thread moves the same disks all the time, when it is their turn. The moves are those of
/// Frame and Stewart; each is checked when it is made, and their number at the end.
#[derive(Debug, Parser)]
#[command(
    name = "hanoi",
    version,
    after_help = "Pegs, disks and threads are counted from 0; disk 0 is the smallest.\n\n\
        Exit code 0: done; 1: disks or moves are not as they should be; 2: the arguments or a file are no good."
)]
struct Arguments {
    /// Disks, at most 64.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 64, value_parser = value_parser!(u16).range(1..=*DISKS.end() as i64))]
    disks: u16,

    /// Pegs, 3 to 8.
    #[arg(long, allow_negative_numbers = true, value_name = "P", default_value_t = 5, value_parser = value_parser!(u16).range(*PEGS.start() as i64..=*PEGS.end() as i64))]
    pegs: u16,

    /// Threads, at most 64. Thread t moves disks t, t + T, and so on.
    #[arg(long, allow_negative_numbers = true, value_name = "T", default_value_t = 64, value_parser = value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: u16,

    /// Times the disks go from end to end: there, back, there, and so on.
    #[arg(long, allow_negative_numbers = true, value_name = "R", default_value_t = 20, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,

    /// Nanoseconds for which each disk is carried, without a lock.
    #[arg(long, allow_negative_numbers = true, value_name = "NS", default_value_t = 1_000, value_parser = value_parser!(u64).range(..=1_000_000_000))]
    work_ns: u64,

    /// Nanoseconds for which each drawing holds the lock of its row or column: the longer, the more
    /// contention.
    #[arg(long, allow_negative_numbers = true, value_name = "NS", default_value_t = 100, value_parser = value_parser!(u64).range(..=1_000_000_000))]
    draw_ns: u64,

    #[command(flatten)]
    lock: Choice,

    /// Leaves the threads to the system. Without it each stays on one processor, and these are
    /// dealt out in turn.
    #[arg(long)]
    no_pin: bool,

    /// Shows the pegs: on a terminal ten times a second, elsewhere at the end.
    #[arg(long)]
    show: bool,

    /// Prints the waits for each lock, not for each kind.
    #[arg(long)]
    by_lock: bool,

    /// Prints how many waits took how long.
    #[arg(long)]
    histogram: bool,
}

/// The streams of the output.
pub struct Streams<'a> {
    /// The report goes here.
    pub out: &'a mut dyn Write,
    /// Messages go here.
    pub err: &'a mut dyn Write,
    /// Set if `out` is a terminal.
    pub out_is_terminal: bool,
    /// Set if `err` is a terminal.
    pub err_is_terminal: bool,
}

struct Play<'a> {
    /// The options of the run.
    options: &'a Options,
    /// Called with the display.
    watch: &'a mut dyn FnMut(&Scene),
}

impl Program for Play<'_> {
    type Outcome = Result<Run, Refused>;

    fn run<L: RawMutex + Send + Sync + 'static>(self, make: &dyn Fn(&str) -> L) -> Self::Outcome {
        hanoi::run_with(self.options, make, self.watch)
    }
}

/// Does what `arguments` say and returns the exit code.
pub fn run(arguments: Vec<OsString>, streams: Streams<'_>) -> u8 {
    let Streams { out, err, out_is_terminal, err_is_terminal } = streams;
    let arguments: Arguments = match crate::parse(arguments, out, err) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let options = Options {
        disks: arguments.disks.into(),
        pegs: arguments.pegs.into(),
        threads: arguments.threads.into(),
        rounds: arguments.rounds,
        work_ns: arguments.work_ns,
        draw_ns: arguments.draw_ns,
        pinned: !arguments.no_pin,
        ..Options::default()
    };
    let locks = match arguments.lock.open() {
        Ok(locks) => locks,
        Err(refused) => {
            let _ = writeln!(err, "hanoi: {refused}");
            return 2;
        }
    };
    let bar = bar(err_is_terminal && !arguments.show, None, "moves");
    let mut board = arguments.show.then_some(Board { live: out_is_terminal, shown: 0 });
    let mut unwritten = Ok(());
    let mut watch = |scene: &Scene| {
        bar.set_length(scene.of);
        bar.set_position(scene.moves);
        if let Some(board) = &mut board
            && unwritten.is_ok()
        {
            unwritten = board.show(out, scene);
        }
    };
    let run = locks.run(Play { options: &options, watch: &mut watch });
    bar.finish_and_clear();
    let run = match run {
        Ok(run) => run,
        Err(refused) => {
            let _ = writeln!(err, "hanoi: {refused}");
            return 2;
        }
    };
    if arguments.show && unwritten.is_ok() {
        unwritten = writeln!(out);
    }
    let report = Report {
        lock: &arguments.lock.to_string(),
        options,
        run: &run,
        by_lock: arguments.by_lock,
        histogram: arguments.histogram,
    };
    crate::report::end("hanoi", unwritten.and_then(|()| report.write(out)), out, err);
    let finished = locks.finish(out);
    if let Err(refused) = &finished {
        let _ = writeln!(err, "hanoi: {refused}");
    }
    match wrong(&run, &options) {
        None if finished.is_err() => 2,
        None => 0,
        Some(what) => {
            let _ = writeln!(
                err,
                "hanoi: {what}: either {} does not exclude or the program is wrong; please report it with this command line",
                report.lock,
            );
            1
        }
    }
}

/// Returns the fault of a run, if there is one.
pub fn wrong(run: &Run, options: &Options) -> Option<String> {
    let needed = hanoi::closed_form(options.disks, options.pegs);
    let moves = needed * u64::from(options.rounds);
    if run.moves != moves {
        return Some(format!(
            "{} moves in {} rounds, but {needed} a round are needed",
            run.moves, options.rounds
        ));
    }
    run.fault.as_ref().map(ToString::to_string)
}

/// The pegs on the terminal, one below the other.
struct Board {
    /// Set if the display is drawn again and again.
    live: bool,
    /// Lines to go back for the next picture.
    shown: usize,
}

impl Board {
    fn show(&mut self, out: &mut dyn Write, scene: &Scene) -> io::Result<()> {
        if !self.live && scene.moves < scene.of {
            return Ok(());
        }
        if self.shown > 0 {
            // Up, and away with the old display.
            write!(out, "\x1b[{}A\x1b[J", self.shown)?;
        }
        let picture = report::picture(scene);
        out.write_all(picture.as_bytes())?;
        self.shown = if self.live { picture.lines().count() } else { 0 };
        out.flush()
    }
}
