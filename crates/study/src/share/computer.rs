//! The part of this computer's description that a shared file has.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// A computer. It has neither a name nor a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Computer {
    /// The processor's model.
    pub processor: String,
    /// The number of threads that can run at once.
    pub processors: usize,
    /// The number of cores that these are in, if the system tells it.
    pub cores: Option<usize>,
    /// The number of sockets, if the system tells it.
    pub sockets: Option<usize>,
    /// The number of NUMA nodes, if the system tells it.
    pub nodes: Option<usize>,
    /// The operating system and the number of its release, without the builder's additions.
    pub kernel: String,
    /// The size of the memory in GiB, rounded up to a power of two, if the system tells it.
    pub memory_gib: Option<u64>,
}

impl Computer {
    /// Describes this computer.
    pub(super) fn here(host: &Host) -> Self {
        let number = |processor: &usize, file: &str| {
            let topology = format!("/sys/devices/system/cpu/cpu{processor}/topology/{file}");
            read_to_string(topology).ok()?.trim().parse::<i64>().ok()
        };
        let socket = |processor: &usize| number(processor, "physical_package_id");
        let core = |processor: &usize| Some((socket(processor)?, number(processor, "core_id")?));
        let cores: Option<BTreeSet<_>> = host.processors.iter().map(core).collect();
        let sockets: Option<BTreeSet<_>> = host.processors.iter().map(socket).collect();
        Self {
            processor: host.processor.clone(),
            processors: host.parallelism,
            cores: cores.map(|cores| cores.len()),
            sockets: sockets.map(|sockets| sockets.len()),
            nodes: nodes(),
            kernel: release(&host.system),
            memory_gib: read_to_string("/proc/meminfo").ok().and_then(|text| memory(&text)),
        }
    }

    /// Describes it in a line.
    pub fn words(&self) -> String {
        let processor = if self.processor.is_empty() { "not known" } else { &self.processor };
        let count = crate::units::count(self.processors, "processor");
        format!("{processor}, {count}, {}", self.kernel)
    }
}

fn nodes() -> Option<usize> {
    let entries = read_dir("/sys/devices/system/node").ok()?;
    let is_node = |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
    let names = entries.flatten().map(|entry| entry.file_name());
    Some(names.filter(|name| name.to_str().is_some_and(is_node)).count()).filter(|&nodes| nodes > 0)
}

/// Returns the system and the number of its release. What follows the number may have the name of
/// the computer that built the kernel.
fn release(system: &str) -> String {
    let (name, release) = system.split_once(' ').unwrap_or((system, ""));
    let number = release.split(|c: char| !c.is_ascii_digit() && c != '.').next();
    format!("{name} {}", number.unwrap_or_default()).trim().to_owned()
}

/// Returns the class of the memory that `/proc/meminfo` tells.
fn memory(text: &str) -> Option<u64> {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.split_whitespace().next()?.parse().ok()?;
    Some(kib.div_ceil(1 << 20).next_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_its_number_and_memory_is_a_class() {
        assert_eq!(release("linux 6.18.44-fc-on-my-host"), "linux 6.18.44");
        assert_eq!((release("macos"), release("")), ("macos".to_owned(), String::new()));
        assert_eq!(memory("MemTotal:        7996416 kB\nMemFree: 1 kB"), Some(8));
        assert_eq!(memory("MemFree: 1 kB"), None);
        let here = Computer::here(&Host::here());
        assert!(here.processors >= 1 && here.cores.is_none_or(|cores| cores >= 1), "{here:?}");
    }
}
