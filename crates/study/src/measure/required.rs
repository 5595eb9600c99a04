//! The precision that each experiment on this computer requires, fixed before anything is measured.

/// The requirement of one experiment.
#[derive(Clone, Copy, Debug)]
pub struct Required {
    /// The experiment's name on the command line.
    pub experiment: &'static str,
    /// The largest width of the confidence interval of each figure that decides: by how much its
    /// upper end may exceed its lower, as a share of the lower.
    pub width: f64,
    /// The reason for the width.
    pub why: &'static str,
    /// The rounds of a quick run: whole ones, the fewest, the most
    /// ([`Precision`](super::Precision)).
    pub quick: [usize; 3],
    /// The rounds of a full run. They are all whole, and always measured.
    pub full: usize,
}

impl Required {
    const fn new(
        experiment: &'static str,
        quick: [usize; 3],
        full: usize,
        (width, why): (f64, &'static str),
    ) -> Self {
        Self { experiment, width, why, quick, full }
    }
}

/// A width, and its reason.
type Width = (f64, &'static str);

const NULL_THREADS: Width = (
    0.05,
    "an idle queue takes some 3 % longer than local free lists here, and 2 % on a simulated \
     Symmetry",
);
const RATES: Width = (0.1, "the limits of the rules are 0.9 and 1.25 times another figure");
const DEGRADED: Width = (0.5, "the limits of figure 4.1's rule, 1.5 and 2, differ by a third");
const NORMALISED: Width = (
    0.5,
    "an interval reaches less than a quarter to either side; the limits, 0.45 to 0.6 and 1.25, \
     are at least a quarter away from 1",
);
const LOSSES: Width =
    (0.3, "an interval reaches 15 % to either side, which is the limit of a loss");
const BY_A_FIFTH: Width = (
    0.4,
    "an interval reaches less than a fifth to either side, which is how near the gangs of figure 4 \
     must be to equation 6, and how near a growth of figure 8 must be to linear and to quadratic",
);
const GANGS: Width = (
    0.4,
    "an interval reaches less than a fifth to either side, which is the band of figure 9 in which \
     a point decides nothing",
);
const BY_A_TENTH: Width = (
    0.2,
    "an interval reaches less than a tenth to either side, by which one system of threads must be \
     ahead of another, or may differ from it",
);
const RACES: Width = (
    0.1,
    "an interval reaches less than 5 % to either side, the noise above which nothing is decided",
);
const FEW_WAITS: Width =
    (0.5, "the interval of a share of long waits is at most 0.4 long, as a share of the limit");
const REGRETS: Width = (
    0.4,
    "an interval reaches less than a fifth to either side, which is the limit of the worst regret",
);

/// The requirements of all experiments that are repeated.
///
/// Which cells decide is in the file of the experiment, beside its rule. A round of those is cheap
/// in the figures that have many peers, so these may take more of them.
/// A `regret` that is not quick has its own rounds, and is judged after them: its double tells the
/// noise.
pub const REQUIRED: &[Required] = &[
    Required::new("all89/fig3.1", [2, 3, 15], 9, NULL_THREADS),
    Required::new("all89/fig3.2", [2, 3, 9], 9, RATES),
    Required::new("all89/fig3.3", [2, 3, 9], 9, RATES),
    Required::new("all89/sec3.6", [2, 3, 9], 9, RATES),
    Required::new("all89/fig4.1", [2, 3, 9], 9, DEGRADED),
    Required::new("all89/fig4.2", [2, 3, 9], 9, DEGRADED),
    Required::new("all89/fig4.3", [2, 3, 9], 9, DEGRADED),
    Required::new("ms97/fig1", [1, 3, 9], 7, NORMALISED),
    Required::new("ms97/fig2", [1, 3, 9], 7, NORMALISED),
    Required::new("ms97/fig3", [1, 3, 9], 7, NORMALISED),
    Required::new("ms97/fig4", [1, 3, 9], 7, NORMALISED),
    Required::new("ms97/fig5", [1, 3, 9], 7, NORMALISED),
    Required::new("ms97/fig6", [1, 3, 9], 7, NORMALISED),
    Required::new("ms97/fig7", [1, 3, 5], 7, NORMALISED),
    Required::new("ms97/levels", [1, 3, 5], 7, LOSSES),
    Required::new("fr92/table1", [3, 3, 7], 15, GANGS),
    Required::new("fr92/fig4", [1, 3, 5], 9, BY_A_FIFTH),
    Required::new("fr92/fig5", [1, 3, 5], 9, GANGS),
    Required::new("fr92/fig6", [1, 3, 7], 9, GANGS),
    Required::new("fr92/fig8", [1, 3, 5], 9, BY_A_FIFTH),
    Required::new("fr92/fig9", [1, 3, 4], 9, GANGS),
    Required::new("klmo91/table3", [1, 3, 7], 7, RACES),
    Required::new("klmo91/table4", [1, 3, 7], 7, RACES),
    Required::new("regsim", [3, 3, 9], 5, FEW_WAITS),
    Required::new("sa92/table4", [3, 3, 9], 15, BY_A_TENTH),
    Required::new("sa92/upcall", [2, 3, 8], 15, BY_A_TENTH),
    Required::new("sa92/fig2", [1, 3, 4], 7, BY_A_TENTH),
    Required::new("sa92/fig3", [1, 3, 7], 7, BY_A_TENTH),
    Required::new("sa92/table5", [1, 3, 5], 7, BY_A_TENTH),
    Required::new("regret", [3, 3, 5], 5, REGRETS),
];
