//! `stanchion study --share FILE`: whether there is something to share, and when it is written.

use std::path::Path;

use stanchion_study::error;
use stanchion_study::files::{make_directory, probe_for};
use stanchion_study::grids;
use stanchion_study::output::Output;
use stanchion_study::share;
use stanchion_study::target::Target;

use crate::args::StudyOptions;
use crate::error::Error;

/// Shares what the output folder has, if no experiment is named. Returns false if something is to
/// be measured first, or nothing is to be shared.
pub(super) fn without_measuring(asked: &StudyOptions, target: &Target) -> Result<bool, Error> {
    let Some(file) = &asked.share else { return Ok(false) };
    if !target.is_real() {
        return Err(Error::OnlyOnReal("--share"));
    }
    make_directory(&asked.output, "--output DIR")?;
    probe_for(file, "--share FILE")?;
    let named =
        !asked.filters.is_empty() || asked.only_for_regret().is_some() || !asked.waits.is_empty();
    if named || asked.resume {
        return Ok(false);
    }
    let (out, has) = (asked.output.display(), !grids::of_here(&asked.output).is_empty());
    let said = if has {
        "has random grids of this computer: nothing is measured"
    } else {
        "has no random grid of this computer: the study runs first"
    };
    output(asked).line(format_args!("{out} {said}"));
    if has {
        write(asked)?;
    }
    Ok(has)
}

/// Refuses a run that leaves nothing to share.
pub(super) fn check(asked: &StudyOptions) -> Result<(), Error> {
    // The study of everything has a first look.
    let makes = asked.filters.is_empty() || asked.random.is_some() && asked.contestants.is_empty();
    if asked.share.is_none() || makes || !grids::of_here(&asked.output).is_empty() {
        return Ok(());
    }
    let out = asked.output.clone();
    Err(error::Error::NothingToShare { out }.into())
}

/// Writes the file, if one is asked for.
pub(super) fn write(asked: &StudyOptions) -> Result<(), Error> {
    let Some(file) = &asked.share else { return Ok(()) };
    Ok(share::write(&asked.output, file, output(asked))?)
}

/// Returns the stream of messages: standard output may carry the results.
fn output(asked: &StudyOptions) -> Output {
    if asked.json.as_deref() == Some(Path::new("-")) { Output::Stderr } else { Output::Stdout }
}
