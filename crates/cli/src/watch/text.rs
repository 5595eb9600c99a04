//! The result of an observation as lines for people.

use stanchion_study::units::{count, grouped, grouped_count, percent};

use super::report::{End, Report, Sleep, ThreadReport};

/// The most threads that are shown.
const THREADS: usize = 40;
/// The most places of a thread that are shown.
const PLACES: usize = 3;
/// The most words that are shown.
const WORDS: usize = 12;
/// The most threads of a word that are shown.
const WAITERS: usize = 8;
/// The width of a thread's name.
const NAME: usize = 16;

/// Returns the lines.
pub(super) fn lines(report: &Report) -> Vec<String> {
    let ended = match report.ended_by {
        End::Time => "",
        End::Interrupt => ", until it was interrupted",
        End::Process => ", until the process ended",
    };
    let mut lines = vec![
        format!(
            "The process {} ({}) for {:.1} s{ended}: {}, {} at least {} ms apart. Observing it took {} of a processor.",
            report.process,
            report.name,
            report.seconds,
            count(report.threads.len(), "thread"),
            grouped_count(report.rounds, "round"),
            report.interval_ms,
            percent(report.observer_share),
        ),
        String::new(),
        format!(
            "{:>8}  {:NAME$} {:>8} {:>8} {:>8}  {:>8} {:>8}  asleep in (share of its readings)",
            "thread", "name", "running", "no proc.", "asleep", "waits", "preempt."
        ),
    ];
    let mut threads: Vec<&ThreadReport> = report.threads.iter().collect();
    if threads.len() > THREADS {
        let awake = |thread: &ThreadReport| {
            thread.running.unwrap_or(0.0) + thread.waiting_for_processor.unwrap_or(0.0)
        };
        threads.sort_by(|a, b| awake(b).total_cmp(&awake(a)));
    }
    lines.extend(threads.iter().take(THREADS).map(|thread| of_thread(thread)));
    if threads.len() > THREADS {
        let more = threads.len() - THREADS;
        lines.push(format!("and {more} more that ran less; --json FILE has all of them"));
    }
    lines.push(
        "(no proc.: ready to run, without a processor. waits, preempt.: voluntary and involuntary switches.)"
            .to_owned(),
    );
    lines.extend(of_words(report));
    lines.push(String::new());
    lines.extend(report.unseen.iter().cloned());
    lines
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}\u{a0}%", 100.0 * share))
}

fn of_thread(thread: &ThreadReport) -> String {
    let mut places: Vec<String> = thread.asleep_in.iter().take(PLACES).map(of_sleep).collect();
    if thread.asleep_in.len() > PLACES {
        places.push(format!("{} more", thread.asleep_in.len() - PLACES));
    }
    if !thread.is_alive {
        places.push("(it has ended)".to_owned());
    }
    let name: String = thread.name.chars().take(NAME).collect();
    format!(
        "{:>8}  {name:NAME$} {:>8} {:>8} {:>8}  {:>8} {:>8}  {}",
        thread.id,
        share(thread.running),
        share(thread.waiting_for_processor),
        share(thread.asleep),
        grouped(thread.voluntary_switches),
        grouped(thread.involuntary_switches),
        places.join(", "),
    )
    .trim_end()
    .to_owned()
}

fn of_sleep(sleep: &Sleep) -> String {
    let word = sleep.word.as_ref().map(|word| format!(" {word}")).unwrap_or_default();
    let limit = if sleep.without_limit { " without a limit" } else { "" };
    format!("{}{word}{limit} {}", sleep.call, percent(sleep.share))
}

/// Returns lines on the words that several threads waited for.
fn of_words(report: &Report) -> Vec<String> {
    let shared = || report.words.iter().filter(|word| word.threads.len() > 1);
    let mut lines = Vec::new();
    if shared().next().is_some() {
        lines.push(String::new());
        lines.push("Addresses in futex that several threads waited for:".to_owned());
    }
    for word in shared().take(WORDS) {
        let waiters: Vec<String> =
            word.threads.iter().take(WAITERS).map(ToString::to_string).collect();
        let more = word.threads.len().saturating_sub(WAITERS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!(
            "  {:18} {}, {} when last read: {}{more}",
            word.address,
            count(word.threads.len(), "thread"),
            word.now.len(),
            waiters.join(", "),
        ));
    }
    let more = shared().count().saturating_sub(WORDS);
    if more > 0 {
        lines.push(format!("  and {more} more addresses"));
    }
    lines
}
