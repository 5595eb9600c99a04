//! The rule of the division: evenly, and processors that one does not want go to the others.

/// Divides `processors` among runtimes that want so many each. Returns their shares, and whether
/// the remainder cannot be divided, so that they take turns: it goes to the runtimes from the
/// `turn`th on.
pub(crate) fn divide(wanted: &[usize], processors: usize, turn: usize) -> (Vec<usize>, bool) {
    let mut shares = vec![0; wanted.len()];
    let mut left = processors;
    loop {
        let open: Vec<usize> = (0..wanted.len()).filter(|&one| shares[one] < wanted[one]).collect();
        if open.is_empty() || left == 0 {
            return (shares, false);
        }
        let each = left / open.len();
        if each == 0 {
            for step in 0..left {
                shares[open[(turn + step) % open.len()]] += 1;
            }
            return (shares, true);
        }
        for one in open {
            let more = each.min(wanted[one] - shares[one]);
            shares[one] += more;
            left -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn division_is_even_and_unwanted_processors_go_to_others() {
        assert_eq!(divide(&[9, 9], 6, 0), (vec![3, 3], false));
        assert_eq!(divide(&[1, 0, 9], 6, 0), (vec![1, 0, 5], false));
        assert_eq!(divide(&[2, 2, 2], 2, 1), (vec![0, 1, 1], true));
        assert_eq!(divide(&[], 2, 1), (vec![], false));
    }

    proptest! {
        #[test]
        fn wanted_processors_are_used_and_shares_are_fair(
            wanted in proptest::collection::vec(0..12_usize, 0..8),
            processors in 1..40_usize,
            turn in 0..20_usize,
        ) {
            let (shares, _) = divide(&wanted, processors, turn);
            prop_assert_eq!(shares.iter().sum::<usize>(), wanted.iter().sum::<usize>().min(processors));
            for (mine, wants) in shares.iter().zip(&wanted) {
                prop_assert!(mine <= wants);
                prop_assert!(mine == wants || shares.iter().all(|other| *other <= mine + 1));
            }
        }
    }
}
