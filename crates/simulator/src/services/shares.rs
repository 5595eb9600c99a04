//! The policy: how many processors each space has.
//!
//! "Processors are divided evenly among the highest priority address spaces; if some address spaces
//! do not need all of the processors in their share, those processors are divided evenly among the
//! remainder", and so on with lower priorities.
//!
//! Source: Anderson, Bershad, Lazowska and Levy 1992, section 4.1; after Zahorjan and McCann 1990.

/// The demand of a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    /// The priority.
    pub(super) priority: i32,
    /// The number of processors that it wants.
    pub(super) wanted: usize,
}

/// Returns the number of processors of each space. Also returns whether some are one short only
/// because the rest cannot be divided, so that they take turns: the rest goes to those from the
/// `turn`th on.
pub(super) fn divide(demands: &[Demand], processors: usize, turn: usize) -> (Vec<usize>, bool) {
    let mut shares = vec![0; demands.len()];
    let mut left = processors;
    let mut priorities: Vec<i32> = demands.iter().map(|demand| demand.priority).collect();
    priorities.sort_unstable_by(|a, b| b.cmp(a));
    priorities.dedup();
    for priority in priorities {
        loop {
            let open: Vec<usize> = (0..demands.len())
                .filter(|&space| {
                    demands[space].priority == priority && shares[space] < demands[space].wanted
                })
                .collect();
            if open.is_empty() || left == 0 {
                break;
            }
            let each = left / open.len();
            if each == 0 {
                for step in 0..left {
                    shares[open[(turn + step) % open.len()]] += 1;
                }
                return (shares, true);
            }
            for space in open {
                let more = each.min(demands[space].wanted - shares[space]);
                shares[space] += more;
                left -= more;
            }
        }
    }
    (shares, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(demands: &[(i32, usize)], processors: usize, turn: usize) -> (Vec<usize>, bool) {
        let demands: Vec<_> =
            demands.iter().map(|&(priority, wanted)| Demand { priority, wanted }).collect();
        divide(&demands, processors, turn)
    }

    #[test]
    fn processors_are_divided_evenly_and_what_is_not_wanted_goes_to_others() {
        assert_eq!(of(&[(0, 9), (0, 9)], 6, 0), (vec![3, 3], false));
        assert_eq!(of(&[(0, 1), (0, 9)], 6, 0), (vec![1, 5], false));
        assert_eq!(of(&[(0, 1), (0, 2), (0, 9)], 6, 0), (vec![1, 2, 3], false));
        assert_eq!(of(&[(0, 2), (0, 2)], 6, 0), (vec![2, 2], false));
        assert_eq!(of(&[], 6, 0), (vec![], false));
    }

    #[test]
    fn higher_priorities_come_first() {
        assert_eq!(of(&[(0, 9), (1, 4)], 6, 0), (vec![2, 4], false));
        assert_eq!(of(&[(0, 9), (1, 9)], 6, 0), (vec![0, 6], false));
        assert_eq!(of(&[(-1, 9), (1, 1), (0, 2)], 6, 0), (vec![3, 1, 2], false));
    }

    #[test]
    fn the_rest_takes_turns() {
        let shares: Vec<_> = (0..3).map(|turn| of(&[(0, 9), (0, 9), (0, 9)], 7, turn).0).collect();
        assert_eq!(shares, [[3, 2, 2], [2, 3, 2], [2, 2, 3]]);
        assert_eq!(of(&[(0, 9), (0, 9), (0, 9)], 2, 2), (vec![1, 0, 1], true));
    }

    proptest! {
        #[test]
        fn nothing_is_idle_that_is_wanted_and_no_program_is_cheated(
            demands in proptest::collection::vec((0..3_i32, 0..12_usize), 0..8),
            processors in 1..40_usize,
            turn in 0..20_usize,
        ) {
            let (shares, _) = of(&demands, processors, turn);
            let wanted: usize = demands.iter().map(|(_, wanted)| wanted).sum();
            prop_assert_eq!(shares.iter().sum::<usize>(), wanted.min(processors));
            for (mine, &(priority, wanted)) in shares.iter().zip(&demands) {
                prop_assert!(*mine <= wanted);
                for (other, &(below, _)) in shares.iter().zip(&demands) {
                    if *mine < wanted && below == priority {
                        prop_assert!(*other <= mine + 1, "{:?} {:?}", demands, shares);
                    }
                    if *mine < wanted && below < priority {
                        prop_assert_eq!(*other, 0, "{:?} {:?}", demands, shares);
                    }
                }
            }
        }
    }
}
