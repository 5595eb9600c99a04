//! The expected times of experiments, from which the bar of a study computes what is left.

use std::time::Duration;

/// Milliseconds of each in a quick study, a line for each.
const QUICK: &str = include_str!("times.txt");

/// The expected time of an experiment that is not in the table.
const USUAL: Duration = Duration::from_secs(3);

/// Returns what the experiment `id` is expected to take.
///
/// Longer studies are taken to be longer in proportion: the bar goes by how fast it has moved, so
/// only proportions matter.
pub(crate) fn expected(id: &str) -> Duration {
    let lines = QUICK.lines().filter_map(|line| line.split_once(' '));
    let millis =
        lines.filter(|&(known, _)| known == id).find_map(|(_, millis)| millis.parse().ok());
    millis.map_or(USUAL, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::catalogue;
    use super::*;

    #[test]
    fn the_table_names_experiments() {
        for line in QUICK.lines().filter(|line| !line.starts_with('#')) {
            let (id, millis) = line.split_once(' ').expect("an id and a time");
            assert!(catalogue().iter().any(|experiment| experiment.id == id), "{id}");
            assert!(millis.parse::<u64>().is_ok(), "{line}");
        }
    }
}
