//! The page of `stanchion advise`, and its pictures as files.

use stanchion_paper_klmo91::waits::judge::{COLUMNS, Costs, FACTORS};
use stanchion_paper_klmo91::waits::pool::Lock;
use stanchion_study::report::chart;
use stanchion_study::report::markup::Markup;
use stanchion_study::report::parts::{badge, figure, finish, start};

use super::Advice;
use crate::args::lacks;
use crate::record::names;
use stanchion_study::outcome::{Axis, Picture, Series, Shape};
use stanchion_study::units::{count, grouped, grouped_count, nanos, percent};

/// So many locks get a picture: those with most time waited.
const PICTURES: usize = 16;
/// The paper's 63 buckets, the last of which has all that is longer.
const BINS: usize = 63;

/// A lock's waits, drawn.
#[derive(Debug)]
pub(crate) struct Drawn {
    /// The name of the file.
    pub(crate) file: String,
    /// The histogram of its waits.
    picture: Picture,
}

impl Drawn {
    /// Returns the picture as a file of its own.
    pub(crate) fn standalone(&self) -> String {
        chart::standalone(&self.picture)
    }
}

/// Pictures of the locks that have one, in the order of locks.
pub(crate) fn pictures(advice: &Advice) -> Vec<Drawn> {
    let cost = advice.pool.cost;
    let draw = |(index, lock): (usize, &Lock)| Drawn {
        file: format!("waits-{:02}{}.svg", index + 1, plain(&lock.name)),
        picture: histogram(lock, cost),
    };
    advice.pool.locks.iter().take(PICTURES).enumerate().map(draw).collect()
}

/// A name as a part of a file's name: its letters and digits.
fn plain(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: String =
        words.filter(|word| !word.is_empty()).map(|word| format!("-{word}")).collect();
    words.chars().take(40).collect()
}

/// Draws the number of waits of each length, in multiples of C, as in figures 1 to 4.
fn histogram(lock: &Lock, cost: f64) -> Picture {
    // Not finer than it was recorded, and up to 5 C at least.
    let recorded = lock.recorded.iter().map(|waits| waits.unit_ns()).max().unwrap_or(1) as f64;
    let width = recorded.max(0.08 * cost);
    let [spun, blocked] = lock.bins(width, BINS);
    let series = |name: &str, counts: Vec<f64>| {
        let ends = (1..=BINS).map(|bin| bin as f64 * width / cost);
        Series::new(name, ends.zip(counts).filter(|point| point.1 > 0.0))
    };
    let last = nanos((BINS - 1) as f64 * width);
    Picture {
        title: format!("Waits for {}; the last bar has all longer than {last}", lock.name),
        shape: Shape::Bars { width: width / cost, bars: BINS },
        x: Axis::linear(format!("length of the wait, in C = {}", nanos(cost))),
        y: Axis::log("waits"),
        series: vec![series("spun through", spun), series("blocked", blocked)],
    }
}

/// The whole document.
pub(crate) fn page(advice: &Advice, pictures: &[Drawn]) -> String {
    let pool = &advice.pool;
    let mut page = Markup::default();
    start(&mut page, "Stanchion advice");
    page.element("h1", "Stanchion advice");
    page.element(
        "p class=\"lead\"",
        "What the waits for a program's locks were, and what each way of spinning and blocking would have cost on them.",
    );
    facts(&mut page, advice);
    sentences(&mut page, advice, usize::MAX);
    tables(&mut page, advice);
    page.raw("<section><h2>What the paper says</h2>\n<ul class=\"summary\">");
    for claim in &advice.claims {
        page.raw("<li>");
        badge(&mut page, &claim.verdict);
        page.text(claim.claim).raw(": ").text(claim.verdict.because()).raw("</li>\n");
    }
    page.raw("</ul></section>\n<section><h2>The waits</h2>\n");
    waits(&mut page, advice);
    for drawn in pictures {
        figure(&mut page, &drawn.picture);
    }
    if pool.locks.len() > pictures.len() {
        let left = count(pool.locks.len() - pictures.len(), "more lock");
        page.element("p class=\"unit\"", &format!("{left} with shorter waits: not drawn"));
    }
    page.raw("</section>\n");
    notes(&mut page);
    finish(&mut page);
    page.finish()
}

/// Writes what is best for each lock, and what to change, of at most `shown` locks each.
pub(crate) fn sentences(page: &mut Markup, advice: &Advice, shown: usize) {
    page.raw("<h2>What is best</h2>\n<div class=\"prose\">");
    let best = advice.each().take(shown);
    let rows: Vec<_> =
        best.map(|(lock, found)| vec![lock.name.clone(), found.words.replace('`', "")]).collect();
    page.table(&["lock", "advice"].map(str::to_owned), &rows).raw("</div>");
    page.raw("<h2>What to change</h2>\n<div class=\"prose\">");
    let changes = advice.changes.iter().take(shown);
    let rows: Vec<_> = changes.map(|change| vec![change.of.clone(), change.what.clone()]).collect();
    page.table(&["lock or program", "line of code, or command"].map(str::to_owned), &rows);
    page.raw("</div>");
}

fn facts(page: &mut Markup, advice: &Advice) {
    let pool = &advice.pool;
    let share = advice.all[0].optimum * advice.all[0].waits / pool.elapsed.max(1) as f64;
    let mut facts = vec![
        ("programs", pool.programs.join(", ")),
        (
            "waits",
            format!(
                "{} for {}",
                grouped_count(pool.waits(), "wait"),
                count(pool.locks.len(), "lock")
            ),
        ),
        ("recorded for", nanos(pool.elapsed as f64)),
        ("C, the cost of blocking", nanos(pool.cost)),
        ("the optimum's cost", format!("{} of the time recorded", percent(share))),
    ];
    if pool.overflow > 0 {
        facts.push(("locks without a name of their own", grouped(pool.overflow)));
    }
    if advice.each().any(|(lock, _)| names::is_bare(&lock.name)) {
        facts.push(("names", names::HINT.to_owned()));
    }
    page.raw("<dl class=\"machine\">");
    for (what, value) in facts {
        page.raw("<div>").element("dt", what).element("dd", &value).raw("</div>");
    }
    page.raw("</dl>\n");
}

/// Writes table 1 of the paper, at each of the first `factors` multiples of C, for at most `shown`
/// locks.
pub(crate) fn costs(page: &mut Markup, advice: &Advice, factors: usize, shown: usize) {
    let cost = advice.pool.cost;
    page.element("h2", "What each policy would have cost");
    page.element(
        "p class=\"unit\"",
        "In multiples of the cost of a policy that knows each wait beforehand: table 1 of Karlin, Li, Manasse and Owicki (1991). The last three columns \
         are not in that table.",
    );
    let mut head = vec!["lock".to_owned()];
    head.extend(COLUMNS.iter().map(|column| column.policy.to_owned()));
    for (index, factor) in FACTORS.iter().enumerate().take(factors) {
        let row = |name: &str, costs: &Costs| {
            let cells = costs.relative().map(super::text::multiple);
            std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>()
        };
        let mut rows: Vec<_> = advice
            .each()
            .take(shown)
            .map(|(lock, found)| row(&lock.name, &found.judged.costs[index]))
            .collect();
        rows.push(row("all together", &advice.all[index]));
        page.element("h3", &format!("C = {}, {factor} times as measured", nanos(factor * cost)));
        page.raw("<div class=\"names\">").table(&head, &rows).raw("</div>");
    }
    page.element("p class=\"unit\"", &lacks!().replace('`', ""));
}

/// Writes the costs at each C, and those that were measured.
fn tables(page: &mut Markup, advice: &Advice) {
    page.raw("<section>");
    costs(page, advice, FACTORS.len(), usize::MAX);
    let checked: Vec<_> = advice
        .checked()
        .map(|(name, computed, measured)| {
            vec![name.to_owned(), super::text::multiple(computed), super::text::multiple(measured)]
        })
        .collect();
    if !checked.is_empty() {
        page.element("h3", "Adaptive, measured in a second run");
        page.table(&["lock", "computed", "measured"].map(str::to_owned), &checked);
    }
    page.raw("</section>\n");
}

/// The waits in figures, and table 2 of the paper.
fn waits(page: &mut Markup, advice: &Advice) {
    let head = [
        "lock",
        "waits",
        "blocked",
        "median",
        "p99",
        "longest",
        "no other waiter",
        "worth blocking for",
        "mean of the others",
        "best threshold",
    ];
    let row = |(lock, found): (&Lock, &super::LockAdvice)| {
        let arrivals = lock.arrivals();
        let all: u64 = arrivals.iter().sum();
        let offline = found.judged.offline;
        vec![
            lock.name.clone(),
            grouped(lock.count()),
            percent(lock.blocked() as f64 / lock.count() as f64),
            nanos(lock.quantile(0.5) as f64),
            nanos(lock.quantile(0.99) as f64),
            nanos(lock.longest() as f64),
            if all == 0 { "–".to_owned() } else { percent(arrivals[0] as f64 / all as f64) },
            percent(offline.share_blocked),
            offline.mean_spin.map_or_else(|| "–".to_owned(), nanos),
            nanos(found.judged.threshold),
        ]
    };
    let rows: Vec<_> = advice.each().map(row).collect();
    page.table(&head.map(str::to_owned), &rows);
}

fn notes(page: &mut Markup) {
    let notes = [
        "A lock's waits are taken to be drawn independently from those recorded; a policy that learns does worse or better where they come in a pattern.",
        "The waits were recorded under one policy. Another would have changed them: a thread that spins gets the lock sooner, and leaves the processor later.",
        "A bucket counts as its longest wait. Waits are not cut at 5 C as the paper's were, so that always spinning costs what it would have cost.",
        "Costs are of processor time. Where a processor would have been idle, spinning costs nothing; the study regret measures throughput.",
    ];
    page.raw("<ul class=\"notes\">");
    for note in notes {
        page.element("li", note);
    }
    page.raw("</ul>\n");
}
