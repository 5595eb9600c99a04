//! Recordings of the waits of programs on this computer.
//!
//! Figures 1 to 4 and tables 1 and 2 are about the same recordings, so each program is recorded
//! once in a study.

use std::sync::{Arc, Mutex, PoisonError};

use stanchion_study::context::{Context, Stop};

use super::external::{self, Missing, without_folders};
use super::place;
use super::real::record;
use super::recording::Taken;
use super::{build, server};
use stanchion_study_programs::klmo91::programs::{Galaxy, Hanoi, Program, Regsim};

/// A program that can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Galaxy,
    Hanoi,
    Regsim,
    /// A parallel build.
    Build,
    /// A server.
    Server,
    /// Our stand-in for a build.
    OwnBuild,
    /// Our stand-in for a server.
    OwnServer,
}

impl Source {
    /// The programs that decide, in the order of the paper's tables.
    pub(crate) const ALL: [Self; 5] =
        [Self::Build, Self::Server, Self::Galaxy, Self::Hanoi, Self::Regsim];
}

/// The recordings of this process. One of each program is enough: a study has one size and one
/// seed.
static TAKEN: Mutex<Vec<(Source, Taken)>> = Mutex::new(Vec::new());

/// Returns the recording of `source`. If no experiment of this study has recorded it yet, records
/// it now.
pub(crate) fn of(source: Source, context: &Context) -> Result<Taken, Stop> {
    let mut all = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = all.iter().find(|entry| entry.0 == source).map(|entry| entry.1.clone());
    let taken = match before {
        Some(taken) => taken,
        None => take(source, context)?,
    };
    if all.iter().all(|entry| entry.0 != source) {
        all.push((source, taken.clone()));
    }
    context.step()?;
    Ok(taken)
}

fn take(source: Source, context: &Context) -> Result<Taken, Stop> {
    let place = place::here(context);
    let length = |quick, full| context.length(quick, full);
    let external = match source {
        Source::Galaxy => {
            return own("Galaxy", &Galaxy::new(&place, length(600, 6_000).into())?, context);
        }
        Source::Hanoi => return own("Hanoi", &Hanoi::new(&place, length(40, 400)), context),
        Source::Regsim => {
            return own("Regsim", &Regsim::new(&place, length(200, 2_000).into())?, context);
        }
        Source::Build => &build::BUILD,
        Source::Server => &server::SERVER,
        Source::OwnBuild => &build::OWN,
        Source::OwnServer => &server::OWN,
    };
    match external::record(external, context) {
        Ok(recorded) => Ok(Ok(Arc::new(recorded))),
        Err(Missing::Because(why)) => {
            let why = without_folders(&why);
            let named = why.starts_with(external.name);
            Ok(Err(if named { why } else { format!("{}: {why}", external.name) }))
        }
        Err(Missing::Stop(stop)) => Err(stop),
    }
}

fn own(name: &'static str, program: &impl Program, context: &Context) -> Result<Taken, Stop> {
    record(name, program, context).map(|recorded| Ok(Arc::new(recorded)))
}
