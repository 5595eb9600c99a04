//! A timeline as a picture: a row for each thread or processor, time from left to right, colours
//! for activities.
//!
//! # Readability
//!
//! A column of a row is a stack: its colours are as high as their shares of the column's time. So a
//! run that is a thousand times too long for its spans to be seen shows how its time was divided. A
//! run that is short enough shows the spans. Shares of less than half a pixel are left out.
//!
//! The picture has at most [`ROWS`] rows and [`WIDTH`] columns. So its size has a bound for any
//! run: a few megabytes if each column of each row is different.
//!
//! All text is set in a fixed-width font, 7 pixels for each character, so that the program can
//! compute which texts have room: nothing overlaps.

use super::axis::Axis;
use super::grid::{Cell, Grid};
use super::legend::{COLOURS, Legend};
use super::text::{GAP, LETTER, escaped, percent, shares, shortened, text};
use super::{Rows, Timeline};
use crate::Time;
use crate::statistics::{Activity, Statistics};
use core::fmt::{self, Display, Formatter, Write};

/// Columns, a pixel each.
const WIDTH: usize = 960;
/// Rows that are drawn.
const ROWS: usize = 128;
/// Characters of a row's name that are shown.
const NAME: usize = 24;

/// A [`Timeline`] to be drawn; [`Display`] makes it SVG. Made by [`Timeline::drawing`].
#[derive(Clone, Debug)]
pub struct Drawing<'run> {
    /// The timeline.
    timeline: &'run Timeline,
    /// The counts, for the names of threads.
    statistics: &'run Statistics,
    /// The kind of rows.
    rows: Rows,
    /// The title.
    title: String,
    /// The beginning and the end of the drawn time.
    between: (Time, Time),
}

impl Timeline {
    /// Returns the timeline as a picture: SVG, by [`to_string`](ToString::to_string). The same run
    /// gives the same text.
    ///
    /// ```
    /// use stanchion_simulator::{Rows, Simulation, inside, machines};
    ///
    /// let run = Simulation::new(machines::modern(2)).timeline().run(|| inside::work(1_500))?;
    /// let timeline = run.timeline.expect("it was asked for");
    /// let picture = timeline.drawing(&run.statistics).rows(Rows::Processors).title("a run");
    /// let picture = picture.to_string();
    /// assert!(picture.starts_with("<svg") && picture.contains("processor 1"));
    /// # Ok::<(), stanchion_simulator::Failure>(())
    /// ```
    #[must_use]
    pub fn drawing<'run>(&'run self, statistics: &'run Statistics) -> Drawing<'run> {
        let between = (Time::ZERO, statistics.elapsed);
        Drawing { timeline: self, statistics, rows: Rows::Threads, title: String::new(), between }
    }
}

impl Drawing<'_> {
    /// Sets the things that have a row: [`Rows::Threads`] by default.
    #[must_use]
    pub fn rows(mut self, rows: Rows) -> Self {
        self.rows = rows;
        self
    }

    /// A title above the picture.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Draws a part of the run: from one moment to another.
    ///
    /// # Panics
    ///
    /// If the part does not end after it begins.
    #[must_use]
    pub fn between(mut self, from: Time, to: Time) -> Self {
        assert!(from < to, "a drawing from {from} to {to} shows no time");
        self.between = (from, to);
        self
    }

    fn count(&self) -> usize {
        match self.rows {
            Rows::Threads => self.statistics.threads.len(),
            Rows::Processors => self.statistics.processors.len(),
        }
    }

    fn name(&self, row: usize) -> String {
        let name = match self.rows {
            Rows::Threads => self.statistics.thread_name(row),
            Rows::Processors => format!("processor {row}"),
        };
        shortened(&name, NAME)
    }

    /// Returns the text on a bar: the thread or the processor.
    fn occupant(&self, occupant: usize) -> String {
        match self.rows {
            Rows::Threads => format!("p{occupant}"),
            Rows::Processors => shortened(&self.statistics.thread_name(occupant), NAME),
        }
    }

    fn summary(&self) -> String {
        let Statistics { elapsed, accesses, .. } = self.statistics;
        let (from, to) = self.between;
        let part = if (from, to) == (Time::ZERO, *elapsed) {
            elapsed.to_string()
        } else {
            format!("{from} to {to} of {elapsed}")
        };
        let key = match self.rows {
            Rows::Threads => "p3: on processor 3",
            Rows::Processors => "a name: the thread that had the processor",
        };
        format!(
            "{part}; in all {} accesses, {} misses, {} lines from other caches; {key}",
            accesses.all, accesses.misses, accesses.transfers
        )
    }
}

/// The positions of the parts, in pixels.
struct Layout {
    /// The left end of the rows.
    left: usize,
    /// The upper end of the rows.
    top: usize,
    /// The distance of two rows.
    pitch: usize,
    /// The number of rows.
    rows: usize,
    /// The width of the rows.
    width: usize,
}

impl Layout {
    fn row(&self, row: usize) -> usize {
        self.top + row * self.pitch
    }

    fn bar(&self) -> usize {
        self.pitch - 3
    }

    fn bottom(&self) -> usize {
        self.row(self.rows)
    }
}

impl Display for Drawing<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let rows = self.count().min(ROWS);
        let grid = Grid::new(&self.timeline.spans, self.rows, (rows, WIDTH), self.between);
        let names: Vec<_> = (0..rows).map(|row| self.name(row)).collect();
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        // "time in us" stands below the names, and half of the first mark.
        let left = 2 * GAP + longest.max(14) * LETTER;
        let legend = Legend::new(&grid, rows, self.rows);
        let layout = Layout {
            left,
            top: 64 + legend.height(left + WIDTH),
            pitch: match rows {
                0..=12 => 24,
                13..=32 => 18,
                _ => 14,
            },
            rows,
            // The right margin holds a share and half of the last mark.
            width: left + WIDTH + 2 * GAP + 8 * LETTER,
        };
        let more = self.count() - rows;
        let height = layout.bottom() + if more > 0 { 56 } else { 40 };

        let title = if self.title.is_empty() { "Timeline" } else { &self.title };
        let room = (layout.width - 2 * GAP) / (LETTER + 2);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"11\" role=\"img\">",
            width = layout.width
        )?;
        writeln!(out, "<title>{}</title>", escaped(title))?;
        writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>")?;
        writeln!(
            out,
            "<text x=\"{GAP}\" y=\"22\" font-size=\"14\" font-weight=\"bold\">{}</text>",
            escaped(&shortened(title, room))
        )?;
        let summary = shortened(&self.summary(), (layout.width - 2 * GAP) / LETTER);
        text(out, (GAP, 42), "start", &summary)?;
        legend.draw(out, 62, left + WIDTH)?;
        text(out, (left + WIDTH + GAP, layout.top - 8), "start", "useful")?;
        self.draw_axis(out, &layout)?;
        for (row, name) in names.iter().enumerate() {
            self.draw_row(out, &layout, &grid, row, name)?;
        }
        if more > 0 {
            let note = format!("and {more} more, which are not drawn");
            text(out, (layout.left, layout.bottom() + 44), "start", &note)?;
        }
        out.write_str("</svg>\n")
    }
}

impl Drawing<'_> {
    fn draw_axis(&self, out: &mut Formatter<'_>, layout: &Layout) -> fmt::Result {
        let axis = Axis::new(self.between, WIDTH as u64, LETTER as u64);
        let bottom = layout.bottom();
        let (from, to) = self.between;
        let length = u128::from(to.since(from).as_picos().max(1));
        out.write_str("<path stroke=\"#ddd\" fill=\"none\" d=\"")?;
        let at = |mark: Time| {
            let offset = u128::from(mark.since(from).as_picos());
            layout.left + (offset * WIDTH as u128 / length) as usize
        };
        for (mark, _) in &axis.marks {
            write!(out, "M{}.5 {}V{}", at(*mark), layout.top - 4, bottom + 6)?;
        }
        writeln!(out, "\"/>")?;
        for (mark, label) in &axis.marks {
            text(out, (at(*mark), bottom + 20), "middle", label)?;
        }
        text(out, (GAP, bottom + 20), "start", &format!("time in {}", axis.unit))
    }

    fn draw_row(
        &self,
        out: &mut Formatter<'_>,
        layout: &Layout,
        grid: &Grid,
        row: usize,
        name: &str,
    ) -> fmt::Result {
        let (top, bar) = (layout.row(row), layout.bar());
        let middle = top + bar / 2 + 4;
        text(out, (GAP, middle), "start", name)?;
        let sums = grid.sums(row);
        let whole: u64 = (0..grid.columns()).map(|column| grid.width(column)).sum();
        writeln!(out, "<g><title>{}: {}</title>", escaped(name), shares(&sums, whole))?;
        let stacks = stacks(grid, row, bar);
        for (activity, colour) in COLOURS.iter().enumerate() {
            let mut path = String::new();
            for run in runs(&stacks, |stack| (stack[activity], stack[activity + 1])) {
                let (low, high) = run.of;
                if high > low {
                    let (x, end) = (column_at(run.from, grid), column_at(run.to, grid));
                    let (y, height, width) = (top + bar - high, high - low, end - x);
                    let x = layout.left + x;
                    write!(path, "M{x} {y}h{width}v{height}h-{width}z")?;
                }
            }
            if !path.is_empty() {
                writeln!(out, "<path fill=\"{colour}\" d=\"{path}\"/>")?;
            }
        }
        writeln!(out, "</g>")?;
        self.draw_occupants(out, layout, grid, row)?;
        let useful = percent(sums[Activity::Useful as usize], whole);
        text(out, (layout.left + WIDTH + GAP, middle), "start", &useful)
    }

    /// A mark where an occupant comes, and its name where there is room.
    fn draw_occupants(
        &self,
        out: &mut Formatter<'_>,
        layout: &Layout,
        grid: &Grid,
        row: usize,
    ) -> fmt::Result {
        let (top, bar) = (layout.row(row), layout.bar());
        for run in runs(grid.row(row), |cell: &Cell| cell.occupant) {
            let Some(occupant) = run.of else { continue };
            let (x, end) = (column_at(run.from, grid), column_at(run.to, grid));
            let name = self.occupant(occupant);
            if end - x < 2 * LETTER + name.chars().count() * LETTER {
                continue;
            }
            let x = layout.left + x;
            writeln!(out, "<path stroke=\"#000\" d=\"M{x}.5 {top}v{bar}\"/>")?;
            writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                x + LETTER,
                top + bar / 2 + 4,
                escaped(&name)
            )?;
        }
        Ok(())
    }
}

/// The boundaries of the colours of each column, in pixels from below.
fn stacks(grid: &Grid, row: usize, bar: usize) -> Vec<[usize; Activity::ALL.len() + 1]> {
    let columns = grid.row(row).iter().enumerate();
    let stack = |(column, cell): (usize, &Cell)| {
        let width = u128::from(grid.width(column));
        let mut boundaries = [0; Activity::ALL.len() + 1];
        let mut sum = 0;
        for (boundary, share) in boundaries[1..].iter_mut().zip(cell.shares) {
            sum += u128::from(share);
            // To the nearest pixel.
            *boundary = ((2 * sum * bar as u128 + width) / (2 * width)) as usize;
        }
        boundaries
    };
    columns.map(stack).collect()
}

/// Neighbouring columns with the same of something.
struct Of<T> {
    /// The common thing.
    of: T,
    /// The first column.
    from: usize,
    /// The column after the last.
    to: usize,
}

fn runs<C, T: PartialEq>(columns: &[C], of: impl Fn(&C) -> T) -> Vec<Of<T>> {
    let mut runs: Vec<Of<T>> = Vec::new();
    for (column, cell) in columns.iter().enumerate() {
        let of = of(cell);
        match runs.last_mut() {
            Some(last) if last.of == of => last.to = column + 1,
            _ => runs.push(Of { of, from: column, to: column + 1 }),
        }
    }
    runs
}

/// Returns the position of a column, in pixels: a short time has fewer columns than there are
/// pixels.
fn column_at(column: usize, grid: &Grid) -> usize {
    column * WIDTH / grid.columns()
}
