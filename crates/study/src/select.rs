//! Selects experiments by filters.

use super::experiment::Experiment;
use crate::error::Error;

/// Returns the experiments that match any of `filters`, in the order of the catalogue; all if there
/// is no filter.
///
/// A filter is a whole id, a part of one, or a pattern in which `*` stands for any run of
/// characters and `?` for one. A filter that is a whole id selects only that experiment, so
/// `fr92/fig4` never selects more.
pub fn select<'a>(
    catalogue: &'a [Experiment],
    filters: &[String],
) -> Result<Vec<&'a Experiment>, Error> {
    if filters.is_empty() {
        return Ok(catalogue.iter().collect());
    }
    let mut chosen = vec![false; catalogue.len()];
    for filter in filters {
        if filter.is_empty() {
            return Err(Error::EmptyFilter);
        }
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
                near: near(catalogue, filter),
            });
        }
    }
    Ok(catalogue.iter().zip(chosen).filter_map(|(e, chosen)| chosen.then_some(e)).collect())
}

/// Returns those of `chosen` that have counterfactuals. If none has, the error names
/// the experiments of the catalogue that do.
pub fn with_counterfactuals<'a>(
    catalogue: &'a [Experiment],
    chosen: &[&'a Experiment],
) -> Result<Vec<&'a Experiment>, Error> {
    let has = |experiment: &&Experiment| experiment.bodies.has_counterfactuals();
    let found: Vec<&Experiment> = chosen.iter().copied().filter(has).collect();
    if found.is_empty() {
        let all = catalogue.iter().filter(has).map(|experiment| experiment.id).collect();
        return Err(Error::NoCounterfactuals { all });
    }
    Ok(found)
}

fn matches(filter: &str, id: &str) -> bool {
    let filter = filter.to_lowercase();
    if filter.contains(['*', '?']) {
        // A pattern may match only the part after the slash, as a plain filter may.
        let figure = id.split_once('/').map_or(id, |(_, figure)| figure);
        glob(filter.as_bytes(), id.as_bytes()) || glob(filter.as_bytes(), figure.as_bytes())
    } else {
        id.contains(&filter)
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

/// Returns up to three ids that `filter` may be a misspelling of, the nearest first. At most one of
/// three letters is wrong, swapped, missing or extra, in the whole id or in the part after the
/// slash.
fn near(catalogue: &[Experiment], filter: &str) -> Vec<&'static str> {
    let filter = filter.to_lowercase();
    let most = (filter.chars().count() / 3).max(1);
    let distance = |id: &str| {
        let figure = id.split_once('/').map_or(id, |(_, figure)| figure);
        strsim::damerau_levenshtein(&filter, id).min(strsim::damerau_levenshtein(&filter, figure))
    };
    let mut ids: Vec<(usize, &'static str)> = catalogue
        .iter()
        .map(|experiment| (distance(experiment.id), experiment.id))
        .filter(|&(distance, _)| distance <= most)
        .collect();
    // The sort is stable: equally near ids stay in the order of the catalogue.
    ids.sort_by_key(|&(distance, _)| distance);
    ids.into_iter().map(|(_, id)| id).take(3).collect()
}
