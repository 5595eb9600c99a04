//! The text that is printed.

use stanchion_simulator::Machine;

use super::Figures;
use stanchion_study::units::{nanos, significant};

/// The largest difference between a simulated figure and the real one, as a share of the real one,
/// that is not marked.
const WITHIN: f64 = 0.3;

/// A lock and its figures.
pub(super) struct Row {
    /// The name of the lock or of the policy.
    pub(super) name: &'static str,
    /// Its figures on this computer.
    pub(super) here: Figures,
    /// Its figures on the simulated machine.
    pub(super) simulated: Figures,
}

/// The machine that is simulated.
pub(super) fn machine(machine: &Machine) -> String {
    format!(
        "simulated: {} with {} processors\n{}",
        machine.name,
        machine.processors,
        machine.to_json()
    )
}

/// All rows below their headings, and how many ratios are marked.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<28}{:^34}{:^34}\n{:<28}{:>11}{:>11}{:>12}{:>11}{:>11}{:>12}\n",
        "lock and unlock",
        "one thread",
        "two threads",
        "",
        "here",
        "simulated",
        "ratio",
        "here",
        "simulated",
        "ratio"
    );
    let (mut compared, mut marked) = (0, 0);
    for row in rows {
        text += &format!("{:<28}", row.name);
        for (here, simulated) in row.here.into_iter().zip(row.simulated) {
            let show = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), nanos);
            let ratio = here.zip(simulated).map(|(here, simulated)| simulated / here);
            let off = ratio.is_some_and(is_off);
            compared += u32::from(ratio.is_some());
            marked += u32::from(off);
            let ratio = ratio.map_or_else(|| "-".to_owned(), significant);
            let mark = if off { " !" } else { "  " };
            text += &format!("{:>11}{:>11}{ratio:>10}{mark}", show(here), show(simulated));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text + &format!("{marked} of {compared} ratios are more than 30 % off (!)")
}

fn is_off(ratio: f64) -> bool {
    (ratio - 1.0).abs() > WITHIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_beyond_the_limit_is_marked_and_one_that_is_missing_is_not_counted() {
        let rows = [
            Row { name: "near", here: [Some(100.0), None], simulated: [Some(129.0), Some(50.0)] },
            Row {
                name: "far",
                here: [Some(100.0), Some(1e3)],
                simulated: [Some(131.0), Some(690.0)],
            },
        ];
        let text = table(&rows);
        let line = |name| text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line("near").contains("1.29") && !line("near").contains('!'), "{text}");
        assert_eq!(line("far").matches('!').count(), 2, "{text}");
        assert!(text.ends_with("2 of 3 ratios are more than 30 % off (!)"), "{text}");
    }
}
