//! Draws the orders of locks: each lock has a row, and a pair is an arc from the held lock to
//! the taken one. Arcs to a lower row are left of the locks, those to a higher row right of them.
//! So names and locks never overlap, whichever pairs there are.

use stanchion_study::report::markup::Markup;

use super::graph::Graph;
use super::{Orders, Pair};

/// The height of a row: two lines of text.
const ROW: f64 = 40.0;
/// The radius of a lock's circle.
const RADIUS: f64 = 6.0;

/// The widths in a picture.
struct Widths {
    /// The class of pages that show it.
    class: &'static str,
    /// The whole.
    all: f64,
    /// The arcs that lead down.
    down: f64,
    /// The arcs that lead up.
    up: f64,
}

/// The picture for a wide window, and the one for a narrow one.
const PICTURES: [Widths; 2] = [
    Widths { class: "wide", all: 840.0, down: 240.0, up: 120.0 },
    Widths { class: "narrow", all: 350.0, down: 90.0, up: 50.0 },
];

/// Writes the picture at both widths.
pub(super) fn write(page: &mut Markup, graph: &Graph<'_>, orders: &Orders) {
    for widths in &PICTURES {
        let height = graph.locks.len() as f64 * ROW;
        let Widths { class, all, .. } = widths;
        page.line(format_args!(
            "<div class=\"{class}\"><svg class=\"chart\" viewBox=\"0 0 {all} {height}\" width=\"100%\" role=\"img\" \
             font-size=\"12\" aria-label=\"The orders in which locks are taken; the lists below have the same\">\n"
        ));
        // Cycles are drawn last, over the others.
        for is_in_cycle in [false, true] {
            let drawn = graph.pairs.iter().filter(|(.., pair)| pair.is_in_cycle == is_in_cycle);
            drawn.for_each(|order| arc(page, widths, graph.locks.len(), order, orders));
        }
        for (row, lock) in graph.locks.iter().enumerate() {
            let is_red = |&(from, to, pair): &(usize, usize, &Pair)| {
                pair.is_in_cycle && (from == row || to == row)
            };
            let fill = if graph.pairs.iter().any(is_red) { "fred" } else { "ftext" };
            let (x, y) = (widths.down, (row as f64 + 0.5) * ROW);
            let left = x + widths.up;
            let letters = ((widths.all - left) / 6.6) as usize;
            page.line(format_args!("<g><title>",));
            page.text(&lock.words(orders)).raw("</title>");
            page.line(format_args!(
                "<circle class=\"{fill}\" cx=\"{x}\" cy=\"{y}\" r=\"{RADIUS}\"/>\
                 <text class=\"ftext\" x=\"{left}\" y=\"{}\" font-weight=\"600\">",
                y - 3.0
            ));
            page.text(&cut(&lock.name(orders), letters)).raw("</text>");
            page.line(format_args!("<text class=\"ftext\" x=\"{left}\" y=\"{}\">", y + 12.0));
            page.text(&cut(&lock.place, letters)).raw("</text></g>\n");
        }
        page.raw("</svg></div>\n");
    }
}

/// Draws a pair.
fn arc(
    page: &mut Markup,
    widths: &Widths,
    rows: usize,
    &(from, to, pair): &(usize, usize, &Pair),
    orders: &Orders,
) {
    let centre = |row: usize| (row as f64 + 0.5) * ROW;
    // Down on the left side, up on the right one; from the lower half of a circle to the upper half
    // of the next, or the other way round.
    let (side, room, shift) =
        if from < to { (-1.0, widths.down, 4.0) } else { (1.0, widths.up, -4.0) };
    let (start, end) = (centre(from) + shift, centre(to) - shift);
    let span = from.abs_diff(to) as f64 / (rows.max(2) - 1) as f64;
    let room = (room - 2.0 * RADIUS - 4.0) * (0.25 + 0.75 * span);
    // A cubic curve reaches three quarters of the way to its control points.
    let reach = room.min(20.0 + (end - start).abs()) / 0.75;
    let x = widths.down + side * RADIUS;
    let (bend, tip) = (x + side * reach, x + side * 7.0);
    let (stroke, fill, width) =
        if pair.is_in_cycle { ("sred", "fred", 2.5) } else { ("saxis", "fsoft", 1.2) };
    let step = &pair.step;
    page.raw("<g><title>");
    page.text(&format!(
        "thread {} held {} and took {} in {}",
        step.thread,
        step.held.name(orders),
        step.taken.name(orders),
        step.function()
    ));
    page.line(format_args!(
        "</title><path class=\"{stroke}\" fill=\"none\" stroke-width=\"{width}\" \
         d=\"M{x:.1} {start:.1}C{bend:.1} {start:.1} {bend:.1} {end:.1} {tip:.1} {end:.1}\"/>\
         <path class=\"{fill}\" d=\"M{x:.1} {end:.1}L{tip:.1} {:.1}V{:.1}Z\"/></g>\n",
        end - 4.0,
        end + 4.0
    ));
}

/// Cuts the beginning of a text that is too long: its end has the line.
fn cut(text: &str, letters: usize) -> String {
    let length = text.chars().count();
    if length <= letters {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(length + 1 - letters.max(1))).collect()
}
