//! The report of a run on the terminal.

use super::family::Family;
use crate::Memory;
use crate::level::Shared;
use crate::report::write_thread;
use stanchion_applications::tsp::{Instance, Options, Run};
use std::io::{self, Write};
use std::path::Path;

/// A run and all that belongs to it.
pub(crate) struct Report<'a> {
    /// The file of the instance.
    pub(crate) file: &'a Path,
    /// The instance.
    pub(crate) instance: &'a Instance,
    /// The family of structures.
    pub(crate) family: Family,
    /// The memory of their nodes.
    pub(crate) memory: Memory,
    /// The options of the search.
    pub(crate) options: Options,
    /// The other applications, and the processor time of the threads.
    pub(crate) shared: &'a Shared,
    /// The result.
    pub(crate) run: &'a Run,
}

impl Report<'_> {
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { options, run, .. } = self;
        writeln!(
            out,
            "instance     {}: {}, {} cities",
            self.file.display(),
            self.instance.name(),
            self.instance.cities(),
        )?;
        let memory = if self.family.has_nodes() { self.memory.name() } else { "no nodes" };
        writeln!(
            out,
            "run          {} structures ({memory}), {} threads, level {}",
            self.family.name(),
            options.threads,
            self.shared.level(),
        )?;
        let cities: Vec<String> = run.tour.iter().map(|city| (city + 1).to_string()).collect();
        writeln!(out, "shortest     {}", run.length)?;
        writeln!(out, "tour         {}", cities.join(" "))?;
        let bounds: u64 = run.threads.iter().map(|share| share.bounds).sum();
        writeln!(out, "looked at    {bounds} tours, {:.1e} were estimated", run.estimate)?;
        writeln!(out, "elapsed      {:.4} s", run.elapsed.as_secs_f64())?;
        for (who, share) in run.threads.iter().enumerate() {
            let done = format!(
                "{} tours from the heap, {} from the stack, {} put in",
                share.from_heap, share.from_stack, share.made
            );
            write_thread(out, who, &done, share.processor)?;
        }
        self.shared.write(out)
    }
}
