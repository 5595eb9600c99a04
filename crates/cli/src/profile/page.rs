//! A profile as a page.

use stanchion_study::report::markup::Markup;
use stanchion_study::report::parts::{finish, start};
use stanchion_study::units::{grouped, grouped_count, nanos, percent};

use super::Subject;
use super::flame::{self, Call};
use super::lanes;
use super::recorded::Recorded;
use super::timeline::Timeline;
use crate::advise;
use crate::orders::{self, Orders};
use crate::paths::{Profile, Waits};

/// The number of names in the table, and of paths.
const SHOWN: usize = 200;

/// The number of calls of a path, the innermost ones.
const CALLS: usize = 64;

/// The number of locks with advice.
const LOCKS: usize = 50;

/// The explanation of the table of threads that ended waits.
const WAKERS: &str = "If it ran, the lock was held for long. If it was preempted, it had work and no processor. If it was blocked, it waited in the \
    kernel itself. In the last column is the share of the waits for which this is known.";

/// Returns the whole document.
pub(super) fn page(subject: &Subject) -> String {
    let mut page = Markup::default();
    match &subject.recorded {
        Some(recorded) => {
            start(&mut page, "Where threads waited");
            waits(&mut page, recorded, subject.orders.as_ref());
        }
        None => {
            start(&mut page, "Orders of locks");
            page.element("h1", "In which orders threads took locks");
            page.element(
                "p class=\"lead\"",
                "Two threads that take two locks in opposite orders can block each other forever, also if they did not in this run.",
            );
        }
    }
    if let Some(orders) = &subject.orders {
        orders::write(&mut page, orders);
    }
    if let Some(recorded) = &subject.recorded {
        notes(&mut page, &recorded.profile);
    }
    finish(&mut page);
    page.finish()
}

/// Writes the part on a recording. `orders` come after it.
fn waits(page: &mut Markup, recorded: &Recorded, orders: Option<&Orders>) {
    let profile = &recorded.profile;
    page.element("h1", &format!("Where the threads of {} waited", profile.program));
    page.element(
        "p class=\"lead\"",
        "The time that its threads were asleep, by what they waited for and by the calls that led there. \
         Several threads may wait at once, so the times can add up to more than the program ran.",
    );
    facts(page, profile);
    orders.iter().for_each(|orders| orders::warning(page, orders));
    classes(page, profile);
    if let Some(timeline) = Timeline::of(recorded) {
        lanes::write(page, &timeline);
    }
    pictures(page, profile);
    names(page, recorded);
    if let Some(advice) = &recorded.advice {
        page.raw("<section>");
        advise::page::sentences(page, advice, LOCKS);
        page.raw("</section>\n<section>");
        advise::page::costs(page, advice, 1, LOCKS);
        page.raw("</section>\n");
    }
    paths(page, profile);
}

fn facts(page: &mut Markup, profile: &Profile) {
    let waits: u64 = profile.paths.iter().map(|waits| waits.waits).sum();
    let total = profile.total_ns() as f64;
    let facts = [
        ("recorded for", nanos(profile.elapsed_ns as f64)),
        ("waits", grouped(waits)),
        ("waited, all threads together", nanos(total)),
        ("paths of calls", grouped(profile.paths.len() as u64)),
    ];
    page.raw("<dl class=\"machine\">");
    for (what, value) in facts {
        page.raw("<div>").element("dt", what).element("dd", &value).raw("</div>");
    }
    page.raw("</dl>\n");
}

fn classes(page: &mut Markup, profile: &Profile) {
    let total = profile.total_ns().max(1) as f64;
    let means = |class: &str| match class {
        "lock" => "another thread held a lock",
        "condition" => "a condition, a semaphore or a barrier",
        "park" => "parked, or for a value of a channel",
        "join" => "for the end of another thread",
        "idle" => "a worker of a known pool without work",
        "sleep" => "for time to pass",
        _ => "the calls do not say for what",
    };
    page.raw("<section>").element("h2", "What for");
    let row = |(class, waits, part): (&str, u64, u64)| {
        vec![class.to_owned(), percent(part as f64 / total), nanos(part as f64), grouped(waits)]
    };
    let rows: Vec<_> = profile.classes().into_iter().map(row).collect();
    page.table(&["kind", "share", "waited", "waits"].map(str::to_owned), &rows);
    let meanings: Vec<_> = profile
        .classes()
        .into_iter()
        .map(|(class, ..)| format!("{class}: {}", means(class)))
        .collect();
    page.element("p class=\"unit\"", &meanings.join("; "));
    page.raw("</section>\n");
}

/// Draws the waits for locks alone, if there are any, and all but idle workers and sleeps.
fn pictures(page: &mut Markup, profile: &Profile) {
    let rests = |waits: &Waits| matches!(waits.class.as_str(), "idle" | "sleep");
    let locks = Call::all(profile, |waits| waits.class != "lock");
    let all = Call::all(profile, rests);
    let both = [
        ("For locks, by path of calls", locks),
        ("For all but idle workers and sleeps, by path of calls", all),
    ];
    for (title, calls) in both.into_iter().filter(|(_, calls)| calls.total_ns > 0) {
        page.raw("<section>").element("h2", title);
        page.element(
            "p class=\"unit\"",
            &format!(
                "{} together. Each bar is as wide as the time of the waits in that call; below it are the calls that it made, \
                 and last the library's way to wait. Point at a bar to read it whole.",
                nanos(calls.total_ns as f64)
            ),
        );
        flame::write(page, &calls);
        page.raw("</section>\n");
    }
}

/// Writes the waits by name, and the state of the threads that ended them.
fn names(page: &mut Markup, recorded: &Recorded) {
    let total = recorded.profile.total_ns().max(1) as f64;
    page.raw("<section>").element("h2", "By name");
    let named = recorded.named();
    let rows = named.iter().take(SHOWN).map(|(class, name, waits)| {
        vec![
            (*name).to_owned(),
            (*class).to_owned(),
            percent(waits.total_ns as f64 / total),
            nanos(waits.total_ns as f64),
            grouped(waits.waits),
            nanos(waits.total_ns as f64 / waits.waits.max(1) as f64),
            super::text::p99(waits),
            nanos(waits.max_ns as f64),
        ]
    });
    let head = ["name", "kind", "share", "waited", "waits", "mean", "p99", "longest"];
    page.raw("<div class=\"names\">");
    page.table(&head.map(str::to_owned), &rows.collect::<Vec<_>>()).raw("</div>");
    if named.iter().any(|(.., waits)| waits.is_bound) {
        let words =
            "≤: the waits have several paths, and the figure is that of the one with the greatest.";
        page.element("p class=\"unit\"", words);
    }
    let wakers = recorded.wakers();
    let rows = named.iter().take(SHOWN).filter_map(|&(class, name, _)| {
        let waker = wakers.get(&(class, name))?;
        let [ran, preempted, blocked] = waker.shares().map(percent);
        Some(vec![
            name.to_owned(),
            class.to_owned(),
            ran,
            preempted,
            blocked,
            percent(waker.covered()),
        ])
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        page.element("h3", "The thread that ended a wait, while it lasted");
        page.element("p class=\"unit\"", WAKERS);
        let head = ["name", "kind", "ran", "preempted", "blocked", "of the waits"];
        page.raw("<div class=\"names\">");
        page.table(&head.map(str::to_owned), &rows).raw("</div>");
    }
    page.raw("</section>\n");
}

/// Writes each path of calls, folded to one line.
fn paths(page: &mut Markup, profile: &Profile) {
    let total = profile.total_ns().max(1) as f64;
    page.raw("<section>").element("h2", "By path of calls");
    let longest = profile.longest();
    for waits in longest.iter().take(SHOWN) {
        page.raw("<details>");
        page.element(
            "summary",
            &format!("{} {}", percent(waits.total_ns as f64 / total), waits.name),
        );
        let lengths = format!(
            "{}, {} together: median {}, p99 {}, longest {}",
            grouped_count(waits.waits, "wait"),
            nanos(waits.total_ns as f64),
            nanos(waits.median_ns as f64),
            nanos(waits.p99_ns as f64),
            nanos(waits.max_ns as f64),
        );
        page.element("p class=\"unit\"", &lengths).raw("<ol>");
        let left_out = waits.calls.len().saturating_sub(CALLS);
        if left_out > 0 {
            page.element(
                "li",
                &format!("{}, not shown", grouped_count(left_out as u64, "outer call")),
            );
        }
        for call in &waits.calls[left_out..] {
            page.raw("<li>").element("code", call).raw("</li>");
        }
        page.raw("</ol></details>\n");
    }
    if longest.len() > SHOWN {
        let more = grouped_count((longest.len() - SHOWN) as u64, "more path");
        page.element("p class=\"unit\"", &format!("{more} with shorter waits: not shown"));
    }
    page.raw("</section>\n");
}

fn notes(page: &mut Markup, profile: &Profile) {
    page.raw("<ul class=\"notes\">");
    let unwalked = format!(
        "{} of the waits came too fast for a look at their calls: each has the path that was found last at its place of the stack.",
        grouped(profile.unwalked)
    );
    let notes = [
        "A wait is a call in which a thread slept: in a function of the C library for threads and time, or in the system call futex. Waits for \
         files and sockets are not seen, nor is the spinning before a wait.",
        "Which thread held a lock is not known: the locks of Rust store no owner.",
    ];
    let sampled = (profile.unwalked > 0).then_some(unwalked.as_str());
    for note in sampled.into_iter().chain(notes) {
        page.element("li", note);
    }
    page.raw("</ul>\n");
}

#[cfg(test)]
mod tests {
    use super::super::recorded::tests::example;
    use super::*;

    #[test]
    fn the_page_has_kinds_pictures_and_paths() {
        let page = page(&Subject { recorded: Some(example()), orders: None });
        for part in [
            "<h1>Where the threads of s waited</h1>",
            "<h2>For locks, by path of calls</h2>",
            "<th scope=\"row\">s: STATIC</th>",
            "2 of the waits came too fast",
            "<td>60.0\u{a0}%</td><td>30.0\u{a0}%</td><td>10.0\u{a0}%</td><td>50.0\u{a0}%</td>",
            "<th scope=\"row\">s: STATIC</th><td>too few waits (1) for advice</td>",
            "<h2>What each policy would have cost</h2>",
            "<li><code>main</code></li><li><code>&lt;secret&gt;::serve</code></li>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
