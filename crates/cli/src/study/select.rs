//! Which experiments a filter means.

use super::experiment::Experiment;
use crate::error::Error;

/// The experiments that match any of `filters`, in the order of the catalogue; all if there is no filter.
///
/// A filter is a whole id, or else a part of one, or else a pattern in which `*` stands for any run of characters
/// and `?` for one. A filter that is a whole id means that one only, so `fr92/fig4` never brings more.
pub(crate) fn select<'a>(
    catalogue: &'a [Experiment],
    filters: &[String],
) -> Result<Vec<&'a Experiment>, Error> {
    if filters.is_empty() {
        return Ok(catalogue.iter().collect());
    }
    let mut chosen = vec![false; catalogue.len()];
    for filter in filters {
        let whole = catalogue.iter().any(|experiment| experiment.id == filter);
        let mut found = false;
        for (experiment, chosen) in catalogue.iter().zip(&mut chosen) {
            let meant =
                if whole { experiment.id == filter } else { matches(filter, experiment.id) };
            found |= meant;
            *chosen |= meant;
        }
        if !found {
            return Err(Error::UnknownExperiment {
                filter: filter.clone(),
                nearest: nearest(catalogue, filter),
            });
        }
    }
    Ok(catalogue.iter().zip(chosen).filter_map(|(e, chosen)| chosen.then_some(e)).collect())
}

fn matches(filter: &str, id: &str) -> bool {
    let filter = filter.to_lowercase();
    if filter.contains(['*', '?']) {
        // A pattern may name the part after the slash only, as a plain filter may.
        let figure = id.split_once('/').map_or(id, |(_, figure)| figure);
        glob(filter.as_bytes(), id.as_bytes()) || glob(filter.as_bytes(), figure.as_bytes())
    } else {
        !filter.is_empty() && id.contains(&filter)
    }
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skipped| glob(rest, &text[skipped..])),
        Some((b'?', rest)) => !text.is_empty() && glob(rest, &text[1..]),
        Some((byte, rest)) => text.first() == Some(byte) && glob(rest, &text[1..]),
    }
}

/// The three ids nearest to `filter`, whole or by the part after the slash.
fn nearest(catalogue: &[Experiment], filter: &str) -> String {
    let filter = filter.to_lowercase();
    let likeness = |id: &str| {
        let figure = id.split_once('/').map_or(id, |(_, figure)| figure);
        strsim::jaro_winkler(&filter, id).max(strsim::jaro_winkler(&filter, figure))
    };
    let mut ids: Vec<&str> = catalogue.iter().map(|experiment| experiment.id).collect();
    // Stable: equal ones stay in the order of the catalogue.
    ids.sort_by(|left, right| likeness(right).total_cmp(&likeness(left)));
    ids.truncate(3);
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::catalogue;
    use super::*;

    fn ids(filters: &[&str]) -> Vec<&'static str> {
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        let all = catalogue().leak();
        select(all, &filters).unwrap().iter().map(|experiment| experiment.id).collect()
    }

    #[test]
    fn filters() {
        assert_eq!(ids(&["all89/fig4.1"]), ["all89/fig4.1"]);
        assert_eq!(ids(&["all89/fig4"]), ["all89/fig4.1", "all89/fig4.2", "all89/fig4.3"]);
        assert_eq!(ids(&["FIG3.5", "regsim"]), ["all89/fig3.5", "regsim"]);
        assert_eq!(ids(&["fig4.?"]), ["all89/fig4.1", "all89/fig4.2", "all89/fig4.3"]);
        assert_eq!(ids(&["*/table3*"]), ["all89/table3.1", "klmo91/table3"]);
        assert_eq!(ids(&["fr92/fig4"]), ["fr92/fig4"]);
        assert_eq!(ids(&[]).len(), 41);
    }

    #[test]
    fn unknown_names_the_nearest() {
        let all = catalogue();
        for (filter, expected) in
            [("all89/fig41", "all89/fig4.1"), ("regsin", "regsim"), ("tabel3.1", "all89/table3.1")]
        {
            let Err(error) = select(&all, &[filter.to_owned()]) else {
                panic!("{filter} matched");
            };
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        assert!(select(&all, &[String::new()]).is_err());
    }
}
