//! Every figure and table of results in the five papers: forty, and beside them the hybrids and the
//! fits of two sections without a figure, what a multiprogramming level costs, a paper's own
//! circuit simulator and the study of regret.
//!
//! Each paper's experiments are in a crate of their own, each in a file of its own.

use stanchion_study::experiment::Experiment;
use stanchion_study::stated::Point;

/// The number of results of the papers; [`BESIDE`] stand beside them.
#[cfg(test)]
const FORTY: usize = 40;

#[cfg(test)]
const BESIDE: [&str; 5] = ["all89/sec3.6", "all89/sec5.1", "ms97/levels", "regsim", "regret"];

/// All experiments, in the order of the papers.
pub(crate) fn catalogue() -> Vec<Experiment> {
    [
        stanchion_paper_all89::EXPERIMENTS,
        stanchion_paper_klmo91::EXPERIMENTS,
        stanchion_paper_sa92::EXPERIMENTS,
        stanchion_paper_fr92::EXPERIMENTS,
        stanchion_paper_ms97::EXPERIMENTS,
        &[stanchion_paper_klmo91::REGSIM, stanchion_regret::EXPERIMENT],
    ]
    .concat()
}

/// All points that the papers state, for the charts of their experiments.
pub(crate) fn points() -> Vec<Point> {
    [
        stanchion_paper_all89::points(),
        stanchion_paper_klmo91::points(),
        stanchion_paper_fr92::points(),
        stanchion_paper_ms97::points(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The forty, by paper: figures and tables of results.
    const IDS: [&str; FORTY] = [
        "all89/table3.1",
        "all89/fig3.1",
        "all89/fig3.2",
        "all89/fig3.3",
        "all89/fig3.4",
        "all89/fig3.5",
        "all89/fig4.1",
        "all89/fig4.2",
        "all89/fig4.3",
        "all89/fig5.1",
        "all89/fig5.2",
        "all89/fig5.3",
        "all89/fig5.4",
        "klmo91/fig1",
        "klmo91/fig2",
        "klmo91/fig3",
        "klmo91/fig4",
        "klmo91/table1",
        "klmo91/table2",
        "klmo91/table3",
        "klmo91/table4",
        "sa92/table4",
        "sa92/upcall",
        "sa92/fig2",
        "sa92/fig3",
        "sa92/table5",
        "fr92/table1",
        "fr92/fig4",
        "fr92/fig5",
        "fr92/fig6",
        "fr92/fig7",
        "fr92/fig8",
        "fr92/fig9",
        "ms97/fig1",
        "ms97/fig2",
        "ms97/fig3",
        "ms97/fig4",
        "ms97/fig5",
        "ms97/fig6",
        "ms97/fig7",
    ];

    #[test]
    fn all_forty_are_listed_once_and_five_beside_them() {
        let listed: Vec<&str> = catalogue().iter().map(|experiment| experiment.id).collect();
        let distinct: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(distinct.len(), listed.len(), "an id is listed twice");
        let mut expected: BTreeSet<&str> = IDS.into();
        assert_eq!(expected.len(), FORTY);
        expected.extend(BESIDE);
        assert_eq!(distinct, expected);
    }

    #[test]
    fn each_says_what_it_claims_and_runs_somewhere() {
        for experiment in catalogue() {
            assert!(experiment.claim.ends_with('.'), "{}", experiment.id);
            assert!(!experiment.title.is_empty(), "{}", experiment.id);
            assert!(experiment.bodies.is_built(), "{}", experiment.id);
            let paper = format!("{:?}/", experiment.paper).to_lowercase();
            assert!(
                BESIDE.contains(&experiment.id) || experiment.id.starts_with(&paper),
                "{} is of {paper}",
                experiment.id
            );
        }
    }
}
