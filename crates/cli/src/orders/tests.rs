//! Orders of locks that are made up, read and shown.

use serde_json::{Value, json};

use super::graph::{Graph, MOST};
use super::*;
use stanchion_study::report::markup::Markup;

/// A lock, made at the line of its number.
fn lock(number: u64) -> Value {
    json!({"number": number, "place": format!("src/secret.rs:{number}:1"), "created": true})
}

/// A step from one lock to another.
fn step(thread: &str, held: u64, taken: u64) -> Value {
    let at = |number: u64| format!("src/secret.rs:{}:9", 100 + number);
    json!({
        "thread": thread, "held": lock(held), "held_mode": "exclusive", "held_at": at(held),
        "taken": lock(taken), "taken_mode": "exclusive", "taken_at": at(taken),
        "calls": ["secret::main at ./src/secret.rs:1:1", format!("secret::take_{taken}<T>")],
    })
}

/// A line of a process that has ended.
fn line(process: u64, cycles: &[Vec<Value>], pairs: &[Value]) -> String {
    let cycle = |steps: &Vec<Value>| json!({"needs_writer": false, "steps": steps});
    let fields = json!({
        "version": 1, "process": process, "ended": true, "locks": 2, "pairs": 0,
        "losses": {"unseen_releases": 0, "too_deep": 0, "cut_searches": 0, "cut_contexts": 0,
            "cut_findings": 0, "cut_pairs": 3},
        "cycles": cycles.iter().map(cycle).collect::<Vec<_>>(), "hints": [], "recursions": [],
        "pairs": pairs,
    });
    let fields = fields.to_string();
    format!(
        "process {process}\nlocks recorded: 2\n{{\"format\": \"stanchion orders\", {}\n",
        &fields[1..]
    )
}

/// Two locks in both orders, and a third one that is taken last.
pub(crate) fn example() -> String {
    let steps = [step("1 `<b>secret`", 1, 2), step("2", 2, 1)];
    line(71, &[steps.to_vec()], &[step("2", 2, 1), step("3", 2, 3)])
}

fn page(orders: &Orders) -> String {
    let mut page = Markup::default();
    write(&mut page, orders);
    page.finish()
}

#[test]
fn a_cycle_is_told_with_both_call_paths() {
    let text = example();
    assert!(Orders::is_in(&text));
    let orders = Orders::read(&text).unwrap();
    let lines = lines(&orders);
    let first = "2 locks recorded in 1 process; 3 pairs; 1 cycle, 0 recursions and 0 hints found";
    assert_eq!(lines[0], first);
    assert_eq!(
        lines[2..12],
        [
            "Possible deadlock of 2 threads",
            "  Thread 1 `<b>secret` held lock 1 and took lock 2 in secret::take_2<T>",
            "    held: lock 1 (created at src/secret.rs:1:1), taken at src/secret.rs:101:9 in mode exclusive",
            "    took: lock 2 (created at src/secret.rs:2:1), taken at src/secret.rs:102:9 in mode exclusive",
            "      secret::take_2<T>",
            "      secret::main at ./src/secret.rs:1:1",
            "  Thread 2 held lock 2 and took lock 1 in secret::take_1<T>",
            "    held: lock 2 (created at src/secret.rs:2:1), taken at src/secret.rs:102:9 in mode exclusive",
            "    took: lock 1 (created at src/secret.rs:1:1), taken at src/secret.rs:101:9 in mode exclusive",
            "      secret::take_1<T>",
        ]
    );
    assert!(
        lines
            .iter()
            .any(|line| line == "Not recorded: pairs of locks beyond those that are kept: 3.")
    );
}

#[test]
fn a_cycle_is_red_in_the_picture_and_names_are_escaped() {
    let page = page(&Orders::read(&example()).unwrap());
    for narrow_or_wide in page.split("<svg").skip(1) {
        let picture = narrow_or_wide.split("</svg>").next().unwrap();
        assert_eq!(picture.matches("class=\"sred\"").count(), 2, "{picture}");
        assert_eq!(picture.matches("class=\"saxis\"").count(), 1, "{picture}");
        assert_eq!(picture.matches("<circle class=\"fred\"").count(), 2, "{picture}");
        assert_eq!(picture.matches("<circle class=\"ftext\"").count(), 1, "{picture}");
    }
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("<b>") && !page.contains("take_2<T>"), "{page}");
    assert!(page.contains("secret::take_2&lt;T&gt;"), "{page}");
}

#[test]
fn without_names_nothing_tells_the_program() {
    let mut orders = Orders::read(&example()).unwrap();
    orders.hide_names();
    let all = format!("{}{}", page(&orders), lines(&orders).join("\n"));
    assert!(!all.contains("secret") && !all.contains("71"), "{all}");
    assert_eq!(orders.cycles[0].steps[0].held.place, orders.cycles[0].steps[1].taken.place);
}

#[test]
fn another_run_of_the_program_adds_only_what_is_new() {
    let second = line(
        72,
        &[vec![step("1", 2, 1), step("2", 1, 2)], vec![step("1", 3, 4), step("2", 4, 3)]],
        &[step("1", 2, 3), step("1", 5, 6)],
    );
    let orders = Orders::read(&(example() + &second)).unwrap();
    assert_eq!(orders.processes, [71, 72]);
    let times: Vec<_> = orders.cycles.iter().map(|cycle| cycle.times).collect();
    assert_eq!(times, [2, 1], "turned, the first cycle is the same");
    let pairs = orders
        .pairs
        .iter()
        .map(|Pair { step, .. }| (step.held.process, step.held.number, step.taken.number));
    let pairs: Vec<_> = pairs.collect();
    assert_eq!(pairs, [(0, 1, 2), (0, 2, 1), (1, 3, 4), (1, 4, 3), (0, 2, 3), (1, 5, 6)]);
    assert_eq!(orders.losses.cut_pairs, 6);
    assert_eq!(orders.pairs[5].step.held.name(&orders), "lock 5 of process 72");
}

#[test]
fn pairs_without_a_cycle_lead_down() {
    let pairs = [(5, 4), (4, 3), (3, 2), (2, 1), (5, 1), (4, 2)];
    let steps: Vec<_> = pairs.iter().map(|&(held, taken)| step("1", held, taken)).collect();
    let orders = Orders::read(&line(1, &[], &steps)).unwrap();
    let graph = Graph::of(&orders);
    let numbers: Vec<_> = graph.locks.iter().map(|lock| lock.number).collect();
    assert_eq!(numbers, [5, 4, 3, 2, 1]);
    assert!(graph.pairs.iter().all(|(from, to, _)| from < to));
    assert!(!graph.has_cycle);
}

#[test]
fn a_large_graph_is_reduced_to_cycles_and_their_neighbours() {
    let cycle = vec![step("1", 500, 501), step("2", 501, 500)];
    let mut steps: Vec<_> = (1..200).map(|number| step("1", number, number + 1)).collect();
    steps.extend([step("1", 600, 500), step("1", 501, 601)]);
    let orders = Orders::read(&line(1, &[cycle], &steps)).unwrap();
    let graph = Graph::of(&orders);
    let mut numbers: Vec<_> = graph.locks.iter().map(|lock| lock.number).collect();
    numbers.sort_unstable();
    assert_eq!((numbers, graph.all), (vec![500, 501, 600, 601], 204));
    assert!(
        page(&orders).contains("Of 204 locks 4 are drawn, which is at most 30: those in cycles")
    );
    // Without cycles those with the most orders.
    let star = (2..60).map(|number| step("1", 1, number)).chain([step("1", 58, 59)]);
    let orders = Orders::read(&line(1, &[], &star.collect::<Vec<_>>())).unwrap();
    let graph = Graph::of(&orders);
    assert_eq!((graph.locks.len(), graph.locks[0].number), (MOST, 1));
    assert!(graph.locks.iter().any(|lock| lock.number == 58));
}

/// The rows of text are what could overlap: each has its own band.
#[test]
fn thirty_locks_in_all_pairs_do_not_overlap() {
    let pairs = (1..=30).flat_map(|held| (1..=30).map(move |taken| (held, taken)));
    let steps =
        pairs.filter(|(held, taken)| held != taken).map(|(held, taken)| step("1", held, taken));
    let orders = Orders::read(&line(1, &[], &steps.collect::<Vec<_>>())).unwrap();
    let page = page(&orders);
    let number = |text: &str, field: &str| -> f64 {
        let (_, rest) = text.split_once(field).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    for picture in page.split("<svg").skip(1) {
        let picture = picture.split("</svg>").next().unwrap();
        let wide = picture.contains("viewBox=\"0 0 840 ");
        let (width, labels) = if wide { (840.0, 360.0) } else { (350.0, 140.0) };
        let texts: Vec<_> = picture.split("<text").skip(1).collect();
        assert_eq!(texts.len(), 60);
        let mut last = 0.0;
        for text in texts {
            let (x, y) = (number(text, " x=\""), number(text, " y=\""));
            assert!(x == labels && y >= last + 12.0, "a row below {last}: {text}");
            last = y;
            let letters = text.split('>').nth(1).unwrap().split('<').next().unwrap();
            assert!(x + letters.chars().count() as f64 * 6.6 <= width, "{text}");
        }
        // No arc reaches the labels, nor the left edge. A curve lies between its points.
        for arc in picture.split(" d=\"M").skip(1) {
            let numbers = arc
                .split('"')
                .next()
                .unwrap()
                .split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
            let numbers: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
            let [x, _, bend, ..] = numbers[..] else { panic!("{arc}") };
            let furthest = x + 0.75 * (bend - x);
            assert!((0.0..labels).contains(&furthest), "{arc}");
        }
    }
}

#[test]
fn a_file_that_is_none_is_refused_with_its_line() {
    assert!(!Orders::is_in("{\"format\": \"stanchion waits\"}") && !Orders::is_in("process x\n"));
    let old = "process 71\nlocks recorded: 2; pairs of a held and a taken lock: 0\n";
    assert!(Orders::is_in(old));
    assert!(matches!(Orders::read(old), Err(NotRead::TextOnly)));
    let text = example();
    let cut = &text[..text.len() - 30];
    assert!(matches!(Orders::read(cut), Err(NotRead::Damaged { line: 3, .. })));
    let later = text.replace("\"version\":1", "\"version\":2");
    assert!(matches!(Orders::read(&later), Err(NotRead::Version { line: 3, version: 2 })));
    for wrong in ["-1", "1e400", "NaN", "99999999999999999999", "null"] {
        let text = text.replacen("\"number\":1,", &format!("\"number\":{wrong},"), 1);
        assert!(matches!(Orders::read(&text), Err(NotRead::Damaged { .. })), "{wrong}");
    }
    let open = line(1, &[vec![step("1", 1, 2), step("2", 3, 1)]], &[]);
    assert!(matches!(Orders::read(&open), Err(NotRead::Wrong(3, "a cycle that does not close"))));
    let none = line(1, &[Vec::new()], &[]);
    assert!(matches!(Orders::read(&none), Err(NotRead::Wrong(3, _))));
    let control = text.replace("1 `<b>secret`", "\\u001b[2J");
    let orders = Orders::read(&control).unwrap();
    assert_eq!(orders.cycles[0].steps[0].thread, "?[2J");
}
