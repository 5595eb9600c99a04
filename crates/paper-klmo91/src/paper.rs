//! The paper's own figures, as it prints them.

use crate::waits::judge::DEFAULT;

/// Table 1: costs relative to the off-line optimum. Columns: block, spin, fixed C/2, fixed C,
/// optimal on-line, three samples, random walk.
pub(crate) const TABLE_1: [(&str, [f64; 7]); 9] = [
    ("Nub (2h)", [1.943, 2.962, 1.503, 1.559, 1.078, 1.225, 1.093]),
    ("Taos (24h)", [1.715, 3.366, 1.492, 1.757, 1.141, 1.212, 1.213]),
    ("Taos (M2+)", [1.776, 3.535, 1.483, 1.750, 1.106, 1.177, 1.160]),
    ("Taos (Regsim)", [1.578, 3.293, 1.499, 1.748, 1.161, 1.260, 1.268]),
    ("Ivy (100m)", [5.171, 2.298, 1.341, 1.438, 1.133, 1.212, 1.167]),
    ("Ivy (18h)", [7.243, 1.562, 1.274, 1.233, 1.109, 1.233, 1.141]),
    ("Galaxy", [2.897, 2.667, 1.419, 1.740, 1.237, 1.390, 1.693]),
    ("Hanoi", [2.997, 2.976, 1.418, 1.726, 1.200, 1.366, 1.642]),
    ("Regsim", [4.675, 1.302, 1.423, 1.374, 1.183, 1.393, 1.366]),
];

// The policies judged are these, two more of the paper, and then the default.
const _: () = assert!(DEFAULT == 7 + 2);

/// A row of table 2: the behaviour of the off-line optimum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offline {
    /// The label of the row.
    pub(crate) program: &'static str,
    /// The share of waits in which it blocks.
    pub(crate) blocks: f64,
    /// Its mean spin where it spins, in microseconds; C was [`SWITCH`].
    pub(crate) spin: f64,
    /// Its share of the elapsed time, where that means anything.
    pub(crate) elapsed: Option<f64>,
}

const fn offline(program: &'static str, blocks: f64, spin: f64, elapsed: Option<f64>) -> Offline {
    Offline { program, blocks, spin, elapsed }
}

/// Table 2.
pub(crate) const TABLE_2: [Offline; 9] = [
    offline("Nub (2h)", 0.287, 63.77, None),
    offline("Taos (24h)", 0.441, 50.66, None),
    offline("Taos (M2+)", 0.422, 48.75, None),
    offline("Taos (Regsim)", 0.47, 60.66, None),
    offline("Ivy (100m)", 0.084, 23.7, None),
    offline("Ivy (18h)", 0.032, 21.87, None),
    offline("Galaxy", 0.255, 24.06, Some(0.041)),
    offline("Hanoi", 0.165, 24.02, Some(0.085)),
    offline("Regsim", 0.083, 27.88, Some(0.099)),
];

/// The Firefly's C in microseconds.
pub(crate) const SWITCH: f64 = 200.0;

/// Returns the row of table 1 for that program.
pub(crate) fn costs(program: &str) -> Option<&'static [f64; 7]> {
    TABLE_1.iter().find(|row| row.0 == program).map(|row| &row.1)
}

/// Returns the row of table 2 for that program.
pub(crate) fn offline_of(program: &str) -> Option<&'static Offline> {
    TABLE_2.iter().find(|row| row.program == program)
}

/// A row of table 3 or 4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elapsed {
    /// The label of the row.
    pub(crate) strategy: &'static str,
    /// Most spins before it blocks.
    pub(crate) spins: &'static str,
    /// The elapsed time of the program.
    pub(crate) seconds: f64,
}

const fn elapsed(strategy: &'static str, spins: &'static str, seconds: f64) -> Elapsed {
    Elapsed { strategy, spins, seconds }
}

/// Table 3: Regsim.
pub(crate) const TABLE_3: [Elapsed; 8] = [
    elapsed("Always-block", "N/A", 10_529.5),
    elapsed("Always-spin", "N/A", 8_256.3),
    elapsed("Fixed-spin C/2", "100", 9_108.0),
    elapsed("Fixed-spin C", "200", 8_000.0),
    elapsed("Opt-known", "1008", 7_881.4),
    elapsed("Opt-approx", "1008", 8_171.2),
    elapsed("3-samples", "1008", 8_011.6),
    elapsed("Random-walk", "1008", 7_929.7),
];

/// Table 4: Hanoi.
pub(crate) const TABLE_4: [Elapsed; 8] = [
    elapsed("Always-block", "N/A", 193.9),
    elapsed("Always-spin", "N/A", 241.2),
    elapsed("Fixed-spin C/2", "100", 170.8),
    elapsed("Fixed-spin C", "200", 164.8),
    elapsed("Opt-known", "1008", 122.1),
    elapsed("Opt-approx", "1008", 135.6),
    elapsed("3-samples", "1008", 134.6),
    elapsed("Random-walk", "1008", 131.6),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_improvements_are_those_printed() {
        let printed = [
            (TABLE_3, [0.0, 21.5, 13.5, 24.0, 25.1, 22.3, 23.9, 24.7]),
            (TABLE_4, [0.0, -24.4, 11.9, 15.0, 37.0, 30.1, 30.5, 32.1]),
        ];
        for (table, improvements) in printed {
            for (row, improvement) in table.iter().zip(improvements) {
                let computed = 100.0 * (1.0 - row.seconds / table[0].seconds);
                // Two were cut, not rounded.
                assert!((computed - improvement).abs() < 0.11, "{}: {computed}", row.strategy);
            }
        }
    }

    #[test]
    fn both_tables_have_the_same_programs() {
        for (costs, offline) in TABLE_1.iter().zip(TABLE_2) {
            assert_eq!(costs.0, offline.program);
        }
        assert!(costs("Galaxy").is_some() && offline_of("Nub (2h)").is_some());
        assert!(costs("galaxy").is_none());
    }

    /// Table 2 determines the optimum's cost, and C over that is the first column of table 1. The
    /// paper's figures agree with each other, but for Hanoi's, of which one must be a misprint:
    /// 24.4 % blocked instead of 16.5 % would agree.
    #[test]
    fn table_2_explains_always_block_but_for_hanoi() {
        for (row, offline) in TABLE_1.iter().zip(TABLE_2) {
            let optimum = offline.blocks * SWITCH + (1.0 - offline.blocks) * offline.spin;
            let off = SWITCH / optimum / row.1[0] - 1.0;
            assert_eq!(off.abs() > 0.015, row.0 == "Hanoi", "{}: {off}", row.0);
        }
    }
}
