//! A description of this computer: what a reader of a report needs to judge its figures.

use std::fs::read_to_string;

use serde::{Deserialize, Serialize};
use stanchion_machine::topology;

/// The name of the load averages.
const LOAD: &str = "load before";

/// The machine a study ran on. A field is empty if the system does not tell it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Host {
    /// The processor's model.
    pub processor: String,
    /// The processor's architecture, as Rust names it.
    pub architecture: String,
    /// The operating system and its release.
    pub system: String,
    /// Numbers of the processors that this process may use.
    pub processors: Vec<usize>,
    /// Threads that can run at once: fewer than processors if a control group limits their time.
    pub parallelism: usize,
    /// Processors' worth of time that a control group allows, if it limits the time.
    pub quota: Option<f64>,
    /// True if the processor reports that it runs under a hypervisor.
    pub virtual_machine: bool,
    /// The kernel's source of time.
    pub clock_source: String,
    /// The load averages before the study, as in `/proc/loadavg`.
    pub load: String,
    /// The version of this package.
    pub stanchion: String,
    /// True if this program was built with optimization.
    pub optimized: bool,
}

impl Host {
    /// Describes this computer.
    pub fn here() -> Self {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            cpuinfo
                .lines()
                .find(|line| line.starts_with(name))
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
        };
        Self {
            processor: field("model name").or_else(|| field("Model")).unwrap_or_default(),
            architecture: std::env::consts::ARCH.to_owned(),
            system: system(),
            processors: topology::processors(),
            parallelism: topology::parallelism(),
            quota: topology::quota().map(topology::Quota::processors),
            virtual_machine: field("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            clock_source: first_line(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            load: first_line("/proc/loadavg"),
            stanchion: env!("CARGO_PKG_VERSION").to_owned(),
            optimized: !cfg!(debug_assertions),
        }
    }

    /// Returns the reason why figures taken here may be off, if there is one.
    pub fn warning(&self) -> Option<String> {
        if !self.optimized {
            return Some(
                "built without optimization, so times mean little: run it by `cargo \
             study`, or build with --release"
                    .to_owned(),
            );
        }
        let busy: f64 = self.load.split(' ').next()?.parse().ok()?;
        let processors = self.parallelism as f64;
        (busy > processors / 2.0).then(|| {
            format!(
                "other programs were busy before the study ({busy:.1} threads wanted these \
                 {processors} processors): figures may not repeat. Close them, and run it again"
            )
        })
    }

    /// Returns a field of which `now` has something else: its name, the value here, and that of
    /// `now`. The load is no field of a computer.
    pub(crate) fn difference(&self, now: &Self) -> Option<(&'static str, String, String)> {
        let fields = self.lines().into_iter().zip(now.lines());
        fields
            .filter(|((what, was), (_, is))| *what != LOAD && was != is)
            .map(|((what, was), (_, is))| (what, was, is))
            .next()
    }

    /// Describes the load averages; empty if not known.
    fn averages(&self) -> String {
        match self.load.split(' ').collect::<Vec<_>>()[..] {
            [one, five, fifteen, ..] => format!(
                "{one} threads running or ready over the last minute, {five} over 5, \
                 {fifteen} over 15"
            ),
            _ => String::new(),
        }
    }

    /// Returns the same description as (name, value) lines for a reader.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let unknown = |text: &str| {
            if text.is_empty() { "not known".to_owned() } else { text.to_owned() }
        };
        let kind = if self.virtual_machine { " (a virtual machine)" } else { "" };
        let quota = match self.quota {
            Some(quota) => format!("{quota:.2} processors' worth of time"),
            None => "none".to_owned(),
        };
        vec![
            ("processor", format!("{}, {}{kind}", unknown(&self.processor), self.architecture)),
            ("processors usable", format!("{} {:?}", self.processors.len(), self.processors)),
            ("time quota", quota),
            ("system", unknown(&self.system)),
            ("clock source", unknown(&self.clock_source)),
            (LOAD, unknown(&self.averages())),
            (
                "stanchion",
                format!(
                    "{}, {}",
                    self.stanchion,
                    if self.optimized { "optimized" } else { "NOT optimized: times mean little" }
                ),
            ),
        ]
    }
}

fn first_line(path: &str) -> String {
    read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

fn system() -> String {
    let release = first_line("/proc/sys/kernel/osrelease");
    format!("{} {release}", std::env::consts::OS).trim().to_owned()
}
