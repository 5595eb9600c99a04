//! The page of a study in a real browser, in a wide window and in that of a telephone: nothing is
//! wider than the window, no texts of a chart overlap, and a link to an experiment unfolds it.
//!
//! The browser is Chromium, without a window. A page that measures itself lies in a frame of each
//! width, because a browser's own window may not be made as narrow as a telephone's.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use stanchion_study::grids::FAMILIES;

use crate::common::{Place, text};

/// Measures the page in its frame, and tells the page around it.
const MEASURE: &str = r#"<script>
addEventListener('load', () => setTimeout(() => {
  const said = [], shown = b => b.width > 0 && b.height > 0;
  const target = document.getElementById(location.hash.slice(1));
  const folded = target && target.closest('details');
  if (location.hash && !(folded && folded.open)) said.push('the link opened nothing');
  if (folded) {
    const line = folded.querySelector('summary').getBoundingClientRect();
    if (line.top < 0 || line.bottom > innerHeight) said.push('its line is at ' + line.top);
  }
  for (const part of document.querySelectorAll('.answers, .claims'))
    if (!location.hash && part.getBoundingClientRect().bottom > innerHeight)
      said.push('the first screen does not have ' + part.className);
  const opened = document.querySelectorAll('details[open]').length;
  const lines = document.querySelectorAll('.experiment').length;
  if (opened > 1) said.push(opened + ' experiments are open');
  document.querySelectorAll('details').forEach(d => d.open = true);
  if (document.documentElement.scrollWidth > innerWidth)
    said.push('the page is ' + document.documentElement.scrollWidth + ' wide');
  for (const element of document.querySelectorAll('main *')) {
    const box = element.getBoundingClientRect();
    if (shown(box) && box.right > innerWidth + 1 && !element.closest('.scroll'))
      said.push(element.tagName + ' ends at ' + box.right + ': ' + element.textContent.slice(0, 40));
  }
  let charts = 0;
  for (const svg of document.querySelectorAll('svg.chart')) {
    const edge = svg.getBoundingClientRect();
    if (!shown(edge)) continue;
    charts += 1;
    if (!svg.getAttribute('aria-label')) said.push('a chart without a description');
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([name, a], at) => {
      if (a.left < edge.left - 1 || a.right > edge.right + 1) said.push(name + ' leaves its chart');
      for (const [other, b] of texts.slice(0, at))
        if (a.left < b.right - 1 && b.left < a.right - 1 && a.top + 3 < b.bottom - 3 && b.top + 3 < a.bottom - 3)
          said.push(name + ' overlaps ' + other);
    });
  }
  parent.postMessage((location.hash || '#') + ' in ' + innerWidth + ' px, ' + lines + ' experiments, ' + charts + ' charts: ' + (said.join('; ') || 'sound'), '*');
}, 300));
</script>"#;

/// The windows of a computer and of a telephone: their widths and heights in pixels.
const WIDTHS: [(u32, u32); 2] = [(1440, 900), (390, 844)];

fn stanchion(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stanchion")).args(arguments).output().unwrap()
}

/// Returns the name of a browser that runs.
pub(crate) fn browser() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|run| run.status.success())
    })
}

/// Opens `page` in frames of both widths, by a link to each of `anchors`, and asserts that all that
/// was found is sound. Returns the findings: those of the wide window before those of the narrow
/// one, anchor by anchor. One browser opens all frames, because starting it takes the longest.
pub(crate) fn measured(browser: &str, place: &Place, page: &str, anchors: &[&str]) -> Vec<String> {
    let page = fs::read_to_string(page).unwrap().replace("</body>", &format!("{MEASURE}</body>"));
    fs::write(place.path("measured.html"), page).unwrap();
    let windows: Vec<_> = anchors
        .iter()
        .flat_map(|anchor| WIDTHS.map(|(width, height)| (anchor, width, height)))
        .collect();
    let frame = |(anchor, width, height): &(&&str, u32, u32)| {
        format!("<iframe width={width} height={height} src='measured.html#{anchor}'></iframe>")
    };
    let around = format!(
        "<!DOCTYPE html><meta charset=utf-8><script>addEventListener('message', e => \
         document.body.append(Object.assign(document.createElement('pre'), {{textContent: e.data}}))\
         )</script><body>{}",
        windows.iter().map(frame).collect::<String>()
    );
    fs::write(place.path("around.html"), around).unwrap();
    let run = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--virtual-time-budget=20000", "--dump-dom", "--window-size=1600,1000"])
        .arg(format!("--user-data-dir={}", place.path("profile")))
        .arg(format!("file://{}", place.path("around.html")))
        .output()
        .unwrap();
    let found = text(&run.stdout);
    let parts = found.split("<pre>").skip(1).filter_map(|rest| rest.split("</pre>").next());
    let parts: Vec<&str> = parts.collect();
    assert_eq!(parts.len(), windows.len(), "{parts:?}");
    let of_window = |&(anchor, width, _): &(&&str, u32, u32)| {
        let start = format!("#{anchor} in {width} px, ");
        let its: Vec<_> = parts.iter().filter_map(|part| part.strip_prefix(&start)).collect();
        assert!(its.len() == 1 && its[0].ends_with(": sound"), "{start}{parts:?}");
        its[0].to_owned()
    };
    windows.iter().map(of_window).collect()
}

#[test]
fn the_page_fits_both_windows_and_links_open_experiments() {
    let Some(browser) = browser() else {
        // The harness captures `eprintln!`, and this must be seen.
        let said = b"SKIPPED: the page in a browser: no Chromium is installed\n";
        std::io::stderr().write_all(said).unwrap();
        return;
    };
    let place = Place::new("page");
    let out = place.path("out");
    opened_with_answers(browser, &place);
    compared(browser, &place);
    let chosen = ["fig3.5", "table3.1", "fig5.2", "all89/fig4.3", "klmo91/table1"];
    let arguments = [&["study", "--quick", "--machine", "simulated", "--out", &out], &chosen[..]];
    let done =
        Command::new(env!("CARGO_BIN_EXE_stanchion")).args(arguments.concat()).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let page = Path::new(&out).join("report.html");
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 5_000_000, "{size}");
    let anchors = ["klmo91-table1", "all89-fig4-3", ""];
    for found in measured(browser, &place, &page.to_string_lossy(), &anchors) {
        assert!(!found.contains(" 0 charts"), "{found}");
    }
}

/// Opens a page of this computer with an answer for each family.
fn opened_with_answers(browser: &str, place: &Place) {
    let out = place.path("here");
    let study =
        || assert!(stanchion(&["study", "fig3.5", "--quick", "--out", &out]).status.success());
    study();
    let file = |name: &str| Path::new(&out).join(name);
    let text = fs::read_to_string(file("results.json")).unwrap();
    let machine = &serde_json::from_str::<Value>(&text).unwrap()["machine"];
    let figures =
        |throughput: f64| json!({"throughput": throughput, "cost": 9.0, "tail": 1e4, "fair": true});
    let cell = |index: usize| {
        let throughputs = [9.0, 8.9, 5.0, 4.0, 3.0].map(|of| of + (index % 3) as f64);
        json!({
            "name": format!("locks:1:{index}"), "threads": index, "hogs": index % 2,
            "length_ns": 1_000.0 * index as f64, "figures": throughputs.map(figures),
        })
    };
    let names =
        ["SegmentedQueue", "TestAndSet<Ethernet>", "parking_lot Mutex<VecDeque>", "std", "usync"];
    let grid = |(family, _): &(&str, &str)| {
        json!({
            "family": family, "written": 1_700_000_000, "seed": 1989, "version": "0.1.0",
            "processor": machine["processor"], "processors": machine["parallelism"],
            "brief": true, "contestants": names,
            "peers": [false, false, true, true, true],
            "cells": (1..9).map(cell).collect::<Vec<_>>(),
        })
    };
    let grids: Vec<Value> = FAMILIES.iter().map(grid).collect();
    let kept = json!({"schema": "stanchion-grids/1", "grids": grids});
    fs::write(file("grids.json"), kept.to_string()).unwrap();
    study();
    let answers = fs::read_to_string(file("results.json")).unwrap();
    assert_eq!(answers.matches("\"within_percent\"").count(), FAMILIES.len());
    measured(browser, place, &file("report.html").to_string_lossy(), &["", "use-heaps"]);
}

/// Opens a page of the computer of the example file and one that is made up.
fn compared(browser: &str, place: &Place) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/share");
    let example = format!("{folder}/intel-xeon-2.json");
    let text = fs::read_to_string(&example).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["number"] = json!("0123456789abcdef");
    other["computer"]["processor"] =
        json!("a processor with a name of fifty-two characters in all");
    let (file, out) = (place.path("other.json"), place.path("compared"));
    fs::write(&file, other.to_string()).unwrap();
    assert!(stanchion(&["compare", &example, &file, "--output", &out]).status.success());
    measured(browser, place, &format!("{out}/report.html"), &["", "all-heaps"]);
}

#[test]
fn a_page_is_written_again_from_results_and_bad_files_are_refused() {
    let place = Place::new("again");
    let out = place.path("out");
    assert!(stanchion(&["study", "fig3.5", "--quick", "--out", &out]).status.success());
    let results = Path::new(&out).join("results.json");
    let whole = fs::read(&results).unwrap();
    let copy = place.path("copy.json");
    fs::write(&copy, &whole).unwrap();
    let other = place.path("other");
    let done = stanchion(&["report", &copy, "--output", &other]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let page = |folder: &str| fs::read_to_string(Path::new(folder).join("report.html")).unwrap();
    assert_eq!(page(&other), page(&out));
    fs::write(&copy, &whole[..whole.len() / 2]).unwrap();
    for (file, said) in [(copy.as_str(), "no whole file of results"), ("/nowhere", "No such file")]
    {
        let refused = stanchion(&["report", file, "--out", &other]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(said), "{}", text(&refused.stderr));
    }
}
