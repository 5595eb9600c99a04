//! The timeline of a run agrees with its statistics, and its picture and its trace are correct.

use crate::common;
use common::Word;
use serde_json::Value;
use stanchion_simulator::inside;
use stanchion_simulator::{Activity, Rows, Run, Simulation, Span, Time, machines};
use std::rc::Rc;

/// More threads than processors, which contend, park, sleep and lose their processors.
fn busy(threads: usize, processors: usize) -> Run<()> {
    let mut machine = machines::modern(processors);
    machine.scheduling.quantum = Time::micros(40);
    // So quick that the threads outnumber the processors before the first has ended.
    machine.scheduling.spawn = Time::micros(1);
    let run = Simulation::new(machine).seed(3).timeline().run(move || {
        let word = Rc::new(Word::new(0));
        let made: Vec<_> = (0..threads)
            .map(|number| {
                let word = Rc::clone(&word);
                let body = move || {
                    for round in 0..30 {
                        word.add(1);
                        inside::work(500 + 700 * (number as u64 % 3));
                        match (number + round) % 10 {
                            0 => inside::sleep(20_000),
                            1 => {
                                let until = inside::now() + 10_000;
                                inside::park(word.address(), || false, until);
                            }
                            2 => {
                                inside::wake(word.address(), 1);
                            }
                            3 => {
                                inside::watch(word.address(), 2_000);
                            }
                            _ => inside::pause(300),
                        }
                    }
                };
                inside::spawn(Some(format!("<{number}> & \"co\"")), None, Box::new(body))
            })
            .collect();
        made.into_iter().for_each(inside::join);
    });
    run.unwrap()
}

fn spans(run: &Run<()>) -> &[Span] {
    run.timeline.as_ref().unwrap().spans()
}

#[test]
fn the_spans_of_a_thread_add_up_to_its_statistics() {
    let run = busy(12, 5);
    for (number, thread) in run.statistics.threads.iter().enumerate() {
        for activity in Activity::ALL {
            let spans = spans(&run).iter().filter(|span| span.thread == number);
            let spent = spans.filter(|span| span.activity == activity);
            let sum: Time = spent.map(|span| span.end - span.start).sum();
            assert_eq!(sum, thread.times.of(activity), "{activity:?} of thread {number}");
        }
    }
    for activity in Activity::ALL {
        assert!(
            spans(&run).iter().any(|span| span.activity == activity),
            "no thread is {activity:?}"
        );
    }
}

#[test]
fn a_thread_does_one_thing_at_a_time_and_a_processor_runs_one_thread() {
    let run = busy(12, 5);
    let apart = |key: &dyn Fn(&Span) -> Option<usize>| {
        let mut spans: Vec<_> = spans(&run)
            .iter()
            .filter_map(|span| Some((key(span)?, span.start, span.end)))
            .collect();
        spans.sort();
        for pair in spans.windows(2) {
            assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?}");
        }
    };
    apart(&|span| Some(span.thread));
    apart(&|span| span.processor);
    for (number, &occupied) in run.statistics.processors.iter().enumerate() {
        let here = spans(&run).iter().filter(|span| span.processor == Some(number));
        assert_eq!(here.map(|span| span.end - span.start).sum::<Time>(), occupied);
    }
}

#[test]
fn the_trace_is_json_and_holds_every_span() {
    let run = busy(6, 2);
    let trace = run.timeline.as_ref().unwrap().chrome(&run.statistics);
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let complete = |process: u64| {
        events.iter().filter(move |event| event["ph"] == "X" && event["pid"] == process)
    };
    assert_eq!(complete(1).count(), spans(&run).len());
    let on_processors: f64 = complete(2).map(|event| event["dur"].as_f64().unwrap()).sum();
    let occupied: Time = run.statistics.processors.iter().copied().sum();
    assert!((on_processors - occupied.as_secs() * 1e6).abs() < 1e-3);
    let names = |event: &&Value| event["name"] == "thread_name" && event["pid"] == 1;
    let names: Vec<_> = events.iter().filter(names).map(|event| &event["args"]["name"]).collect();
    assert_eq!((names.len(), names[1]), (7, &Value::from("1 <0> & \"co\"")));
}

/// An element of an XML text: name, attributes, and the text behind its tag.
type Element = (String, Vec<(String, String)>, String);

/// The elements of an XML text. Fails if tags do not match or quotes do not close.
fn elements(svg: &str) -> Vec<Element> {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for part in svg.split('<').skip(1) {
        let (tag, behind) = part.split_once('>').expect("a tag ends");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap().to_owned();
        let mut attributes = Vec::new();
        let mut rest = tag[name.len()..].trim_end_matches('/').trim();
        while !rest.is_empty() {
            let (key, value) = rest.split_once("=\"").expect("an attribute has a value");
            let (value, next) = value.split_once('"').expect("a quote closes");
            assert!(!value.contains('&') && !key.contains(char::is_whitespace), "{tag}");
            attributes.push((key.to_owned(), value.to_owned()));
            rest = next.trim();
        }
        let ampersands = behind.matches('&').count();
        let entities =
            ["&amp;", "&lt;", "&gt;", "&quot;"].map(|entity| behind.matches(entity).count());
        assert_eq!(ampersands, entities.iter().sum::<usize>(), "{behind}");
        let text = behind.replace("&lt;", "<").replace("&gt;", ">");
        let text = text.replace("&quot;", "\"").replace("&amp;", "&");
        if !tag.ends_with('/') {
            open.push(name.clone());
        }
        found.push((name, attributes, text));
    }
    assert!(open.is_empty(), "{open:?} never closes");
    found
}

/// Left, right and base of each text, in a font of 7 pixels a character at most.
fn texts(svg: &str) -> Vec<(f64, f64, f64, String)> {
    let elements = elements(svg).into_iter().filter(|(name, ..)| name == "text");
    let boxes = elements.map(|(_, attributes, text)| {
        let get = |key: &str| {
            attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
        };
        let number = |key| get(key).unwrap().parse::<f64>().unwrap();
        let letter = if get("font-size").is_some() { 8.4 } else { 6.6 };
        let width = text.chars().count() as f64 * letter;
        let left =
            number("x") - if get("text-anchor") == Some("middle") { width / 2.0 } else { 0.0 };
        (left, left + width, number("y"), text)
    });
    boxes.collect()
}

#[test]
fn no_text_of_a_picture_overlaps_another_or_leaves_it() {
    for (threads, processors) in [(1, 1), (3, 2), (12, 5), (40, 33), (64, 64)] {
        let run = busy(threads, processors);
        let timeline = run.timeline.as_ref().unwrap();
        for rows in [Rows::Threads, Rows::Processors] {
            let drawing = timeline.drawing(&run.statistics).rows(rows).title("a <title> & more");
            let part = drawing.clone().between(Time::micros(31), Time::nanos(31_750));
            for svg in [drawing.to_string(), part.to_string()] {
                let texts = texts(&svg);
                let width = elements(&svg)[0].1[2].1.parse::<f64>().unwrap();
                for (index, one) in texts.iter().enumerate() {
                    assert!(one.0 >= 0.0 && one.1 <= width, "{one:?} is outside");
                    for other in &texts[..index] {
                        let apart =
                            one.1 <= other.0 || other.1 <= one.0 || (one.2 - other.2).abs() >= 12.0;
                        assert!(apart, "{one:?} overlaps {other:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_picture_says_what_each_thread_did() {
    let run = busy(12, 5);
    let timeline = run.timeline.as_ref().unwrap();
    let svg = timeline.drawing(&run.statistics).rows(Rows::Processors).to_string();
    let texts: Vec<_> = texts(&svg).into_iter().map(|(.., text)| text).collect();
    for expected in ["processor 0", "processor 4", "time in us"] {
        assert!(texts.iter().any(|text| text.trim() == expected), "{expected} of {texts:?}");
    }
    let useful: Time =
        run.statistics.threads.iter().map(|thread| thread.times.of(Activity::Useful)).sum();
    let all: Time = run.statistics.processors.iter().copied().sum();
    let share = format!("useful {:.1} %", useful.as_secs() / all.as_secs() * 100.0);
    assert!(texts.iter().any(|text| text.trim() == share), "{share} of {texts:?}");
    // A part is large enough for names on the bars.
    let part = timeline.drawing(&run.statistics).between(Time::micros(100), Time::micros(140));
    let svg = part.rows(Rows::Processors).to_string();
    let names = elements(&svg).into_iter().filter(|(_, attributes, text)| {
        attributes.iter().any(|(key, _)| key == "paint-order") && text.contains("> & \"co\"")
    });
    assert!(names.count() > 2, "an occupant has a name");
}

#[test]
fn a_picture_has_a_bound_and_is_the_same_on_every_run() {
    let svg = |run: &Run<()>| run.timeline.as_ref().unwrap().drawing(&run.statistics).to_string();
    let run = busy(150, 8);
    let picture = svg(&run);
    assert!(picture.contains("and 23 more, which are not drawn"), "151 threads, 128 rows");
    assert!(picture.len() < 4 << 20, "{} bytes", picture.len());
    assert_eq!(picture, svg(&busy(150, 8)));
}

#[test]
#[should_panic(expected = "shows no time")]
fn a_picture_of_no_time_is_refused() {
    let run = busy(1, 1);
    let timeline = run.timeline.as_ref().unwrap();
    drop(timeline.drawing(&run.statistics).between(Time::micros(2), Time::micros(2)));
}
