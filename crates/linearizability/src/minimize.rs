//! The smallest part that still fails.

/// Takes from `items` what can go so that `fails` still holds, and returns the rest.
///
/// Takes halves first, then smaller and smaller pieces. If what fails still fails with more items,
/// then no single item can be taken from the rest. `fails` is asked O(n) times for n items that
/// remain, and O(log n) times for each that remains of many.
pub(crate) fn minimize<T: Clone>(mut items: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut piece = items.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < items.len() {
            let end = (at + piece).min(items.len());
            let mut rest = items[..at].to_vec();
            rest.extend_from_slice(&items[end..]);
            if fails(&rest) {
                items = rest;
            } else {
                at = end;
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays() {
        for needed in [vec![], vec![0], vec![17], vec![3, 4, 99], vec![0, 50, 98, 99]] {
            let mut asked = 0;
            let rest = minimize((0..100).collect(), |items| {
                asked += 1;
                needed.iter().all(|item| items.contains(item))
            });
            assert_eq!(rest, needed);
            assert!(asked < 60, "{asked} times for {needed:?}");
        }
    }
}
