//! From a chart to marks on a drawing area.
//!
//! All lengths are in units of the picture; the area is finer by a whole number, for plotters places marks at whole
//! numbers only.

use super::axis::{Range, Scale, Tick};
use super::chart::{Chart, Estimate, Ink, Marker, Series, Shape, Stroke};
use super::font::{self, width};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of every picture, in units.
pub(super) const WIDTH: u32 = 760;
/// Height of the plotted part, in units.
const PLOT_HEIGHT: f64 = 380.0;
/// Free space at the borders of the picture, in units.
const BORDER: f64 = 16.0;
/// Sizes (em) of text, in units.
const TITLE: f64 = 16.0;
const TEXT: f64 = 11.7;
/// Distance of two lines of text, in units.
const LINE: f64 = 18.0;
/// Length of a sample in the legend, in units.
const SAMPLE: f64 = 30.0;
/// Half the width of a marker, in units.
const MARKER: f64 = 3.3;
/// Half the width of the end of an error bar, in units.
const CAP: f64 = 3.0;
/// Width of the lines of data, in units.
const STROKE: f64 = 1.6;
const GREY: RGBColor = RGBColor(85, 85, 85);
const GRID: RGBColor = RGBColor(228, 228, 228);

type Area<DB> = DrawingArea<DB, Shift>;
type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// Where everything goes, before there is anything to draw on.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    chart: &'a Chart,
    x: Range,
    y: Range,
    /// The plotted part.
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// Entries of the legend with the places of their samples.
    legend: Vec<(&'a Series, &'a str, f64, f64)>,
    /// Height of the picture.
    pub(super) height: u32,
}

impl<'a> Layout<'a> {
    pub(super) fn new(chart: &'a Chart) -> Self {
        let x = Range::new(chart.x.scale, chart.series.iter().flat_map(xs));
        let y = Range::new(chart.y.scale, chart.series.iter().flat_map(|series| ys(series, chart.y.scale)));
        let labels = y.ticks().into_iter().filter_map(|tick| tick.label).map(|label| width(&label, TEXT));
        let left = BORDER + LINE + 8.0 + labels.fold(0.0, f64::max) + 8.0;
        let right = f64::from(WIDTH) - BORDER - 8.0;
        let top = BORDER + 26.0 + LINE * chart.notes().count() as f64 + 8.0;
        let bottom = top + PLOT_HEIGHT;

        let entries: Vec<_> = chart.series.iter().filter_map(|s| Some((s, s.label.as_deref()?))).collect();
        // In as many columns as have room, one after the other, so that what belongs together stays together.
        let columns_of = |rows: usize| {
            let columns = entries
                .chunks(rows)
                .map(|column| SAMPLE + 34.0 + column.iter().map(|(_, label)| width(label, TEXT)).fold(0.0, f64::max));
            columns.collect::<Vec<f64>>()
        };
        let rows = (1..entries.len()).find(|rows| columns_of(*rows).iter().sum::<f64>() <= right - left + 26.0);
        let rows = rows.unwrap_or(entries.len()).max(1);
        let columns = columns_of(rows);
        let first = bottom + 2.0 * LINE + 22.0;
        let legend = entries.into_iter().enumerate().map(|(i, (series, label))| {
            let x = left + columns[..i / rows].iter().sum::<f64>();
            (series, label, x, first + 1.1 * LINE * (i % rows) as f64)
        });
        let legend: Vec<_> = legend.collect();
        let rows = rows.min(legend.len());
        let height = (first + 1.1 * LINE * rows as f64 + BORDER - 0.5 * LINE) as u32;
        Self { chart, x, y, left, right, top, bottom, legend, height }
    }

    /// Draws everything on an area that is finer than the layout by `fine`.
    pub(super) fn draw<DB: DrawingBackend>(&self, area: &Area<DB>, fine: u32) -> Drawn<DB> {
        let pen = Pen { area, fine: f64::from(fine) };
        area.fill(&WHITE)?;
        self.draw_frame(&pen)?;
        // Areas lie under lines, lines under points.
        let layer = |series: &&Series| match series.shape {
            Shape::Bars { .. } | Shape::Band(_) => 0,
            Shape::Line { .. } => 1,
            Shape::Points { .. } => 2,
        };
        let mut series: Vec<&Series> = self.chart.series.iter().collect();
        series.sort_by_key(layer);
        series.into_iter().try_for_each(|series| self.draw_series(&pen, series))?;
        let Self { left, right, top, bottom, .. } = *self;
        pen.line(&[(left, top), (left, bottom), (right, bottom)], 1.0, BLACK)?;
        for (series, label, x, y) in &self.legend {
            draw_sample(&pen, series, *x, *y)?;
            let room = f64::from(WIDTH) - BORDER - (x + SAMPLE + 8.0);
            pen.text(&shortened(label, TEXT, room), (x + SAMPLE + 8.0, *y), TEXT, BLACK, HPos::Left)?;
        }
        Ok(())
    }

    fn draw_frame<DB: DrawingBackend>(&self, pen: &Pen<'_, DB>) -> Drawn<DB> {
        let Self { left, right, top, bottom, .. } = *self;
        pen.text(&shortened(&self.chart.title, TITLE, right - left), (left, BORDER + 8.0), TITLE, BLACK, HPos::Left)?;
        for (i, line) in self.chart.notes().enumerate() {
            let y = BORDER + 31.0 + LINE * i as f64;
            pen.text(&shortened(line, TEXT, right - left), (left, y), TEXT, GREY, HPos::Left)?;
        }
        let mut free = 0.0;
        for Tick { place, label } in self.x.ticks() {
            let x = left + place * (right - left);
            // A label without room is left out.
            let half = label.as_ref().map_or(0.0, |label| 0.5 * width(label, TEXT));
            let label = label.filter(|_| free < x - half && x + half < f64::from(WIDTH));
            let length = if label.is_some() { 5.0 } else { 2.5 };
            pen.line(&[(x, bottom), (x, bottom + length)], 0.8, BLACK)?;
            if let Some(label) = label {
                pen.line(&[(x, top), (x, bottom)], 0.8, GRID)?;
                pen.text(&label, (x, bottom + 15.0), TEXT, BLACK, HPos::Center)?;
                free = x + half + 8.0;
            }
        }
        for Tick { place, label } in self.y.ticks() {
            let y = bottom - place * (bottom - top);
            let length = if label.is_some() { 5.0 } else { 2.5 };
            pen.line(&[(left - length, y), (left, y)], 0.8, BLACK)?;
            if let Some(label) = label {
                pen.line(&[(left, y), (right, y)], 0.8, GRID)?;
                pen.text(&label, (left - 9.0, y), TEXT, BLACK, HPos::Right)?;
            }
        }
        let x_label = shortened(&self.chart.x.label, TEXT, right - left);
        pen.text(&x_label, ((left + right) / 2.0, bottom + 36.0), TEXT, BLACK, HPos::Center)?;
        let y_label = shortened(&self.chart.y.label, TEXT, bottom - top);
        pen.vertical_text(&y_label, (BORDER + 8.0, (top + bottom) / 2.0), TEXT)
    }

    fn draw_series<DB: DrawingBackend>(&self, pen: &Pen<'_, DB>, series: &Series) -> Drawn<DB> {
        let colour = colour(series.ink);
        let x_at = |place: f64| self.left + place * (self.right - self.left);
        let y_at = |place: f64| self.bottom - place * (self.bottom - self.top);
        let at = |x: f64, y: f64| Some((x_at(self.x.place(x)?), y_at(self.y.place(y)?)));
        match &series.shape {
            Shape::Bars { width, bars } => {
                for &(x, height) in bars {
                    let sides = (self.x.place(x - width / 2.0), self.x.place(x + width / 2.0));
                    if let (Some(from), Some(to), Some(place)) = (sides.0, sides.1, self.y.place(height)) {
                        pen.rectangle((x_at(from), y_at(place)), (x_at(to), self.bottom), pale(series.ink))?;
                    }
                }
            }
            Shape::Line { stroke, points } => {
                let points: Vec<_> = points.iter().filter_map(|&(x, y)| at(x, y)).collect();
                pen.stroke(&points, *stroke, colour)?;
            }
            Shape::Points { marker, points } => {
                for &Estimate { x, y, low, high } in points {
                    let Some(x) = self.x.place(x).map(x_at) else { continue };
                    let ends = (self.y.end_of_interval(low), self.y.end_of_interval(high));
                    if let (Some(low), Some(high)) = ends
                        && low < high
                    {
                        pen.line(&[(x, y_at(low)), (x, y_at(high))], 1.2, colour)?;
                        // One that runs on beyond the axis has no end to be seen.
                        for end in [low, high].into_iter().filter(|end| 0.0 < *end && *end < 1.0) {
                            pen.line(&[(x - CAP, y_at(end)), (x + CAP, y_at(end))], 1.2, colour)?;
                        }
                    }
                    if let Some(y) = self.y.place(y) {
                        pen.marker((x, y_at(y)), *marker, colour)?;
                    }
                }
            }
            Shape::Band(points) => {
                let ends = points.iter().filter_map(|&(x, low, high)| {
                    let (low, high) = (self.y.end_of_interval(low)?, self.y.end_of_interval(high)?);
                    Some((x_at(self.x.place(x)?), y_at(low), y_at(high)))
                });
                let ends: Vec<_> = ends.collect();
                let lower = ends.iter().map(|&(x, low, _)| (x, low));
                let upper = ends.iter().rev().map(|&(x, _, high)| (x, high));
                pen.polygon(&lower.chain(upper).collect::<Vec<_>>(), colour.mix(0.22))?;
            }
        }
        Ok(())
    }
}

/// A piece of what `series` looks like, its left end at (x, y).
fn draw_sample<DB: DrawingBackend>(pen: &Pen<'_, DB>, series: &Series, x: f64, y: f64) -> Drawn<DB> {
    let colour = colour(series.ink);
    let middle = x + SAMPLE / 2.0;
    match &series.shape {
        Shape::Bars { .. } => pen.rectangle((x + 6.0, y - 5.0), (x + SAMPLE - 6.0, y + 5.0), pale(series.ink)),
        Shape::Band(_) => pen.rectangle((x, y - 6.0), (x + SAMPLE, y + 6.0), colour.mix(0.22)),
        Shape::Line { stroke, .. } => pen.stroke(&[(x, y), (x + SAMPLE, y)], *stroke, colour),
        Shape::Points { marker, points } => {
            if points.iter().any(|point| point.low < point.high) {
                pen.line(&[(middle, y - 7.0), (middle, y + 7.0)], 1.2, colour)?;
            }
            pen.marker((middle, y), *marker, colour)
        }
    }
}

/// Draws on an area in units.
struct Pen<'a, DB: DrawingBackend> {
    area: &'a Area<DB>,
    fine: f64,
}

impl<DB: DrawingBackend> Pen<'_, DB> {
    fn at(&self, (x, y): (f64, f64)) -> (i32, i32) {
        ((x * self.fine).round() as i32, (y * self.fine).round() as i32)
    }

    fn all(&self, points: &[(f64, f64)]) -> Vec<(i32, i32)> {
        points.iter().map(|&point| self.at(point)).collect()
    }

    fn line(&self, points: &[(f64, f64)], width: f64, colour: impl Into<RGBAColor>) -> Drawn<DB> {
        let width = (width * self.fine).round() as u32;
        let mut points = self.all(points);
        // A line without length has no direction, in which plotters would give it a width.
        points.dedup();
        if points.len() < 2 {
            return Ok(());
        }
        self.area.draw(&PathElement::new(points, colour.into().stroke_width(width)))
    }

    /// A line of data.
    fn stroke(&self, points: &[(f64, f64)], stroke: Stroke, colour: RGBAColor) -> Drawn<DB> {
        match stroke {
            Stroke::Solid => self.line(points, STROKE, colour),
            Stroke::Dashed => dashes(points, 7.0, 4.0).iter().try_for_each(|dash| self.line(dash, STROKE, colour)),
            Stroke::Dotted => dashes(points, 2.0, 3.0).iter().try_for_each(|dash| self.line(dash, STROKE, colour)),
        }
    }

    fn rectangle(&self, from: (f64, f64), to: (f64, f64), colour: RGBAColor) -> Drawn<DB> {
        self.area.draw(&Rectangle::new([self.at(from), self.at(to)], colour.filled()))
    }

    fn polygon(&self, points: &[(f64, f64)], colour: RGBAColor) -> Drawn<DB> {
        if points.len() < 4 { Ok(()) } else { self.area.draw(&Polygon::new(self.all(points), colour.filled())) }
    }

    fn marker(&self, (x, y): (f64, f64), marker: Marker, colour: RGBAColor) -> Drawn<DB> {
        let around = |corners: &[(f64, f64)]| {
            let corners: Vec<_> = corners.iter().map(|(dx, dy)| (x + MARKER * dx, y + MARKER * dy)).collect();
            self.area.draw(&Polygon::new(self.all(&corners), colour.filled()))
        };
        match marker {
            Marker::Circle => {
                self.area.draw(&Circle::new(self.at((x, y)), (MARKER * self.fine).round(), colour.filled()))
            }
            Marker::Square => around(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Marker::Triangle => around(&[(0.0, -1.2), (1.15, 0.8), (-1.15, 0.8)]),
            Marker::Diamond => around(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        }
    }

    /// Text whose middle line (of small letters) passes through a point.
    fn text(&self, text: &str, at: (f64, f64), size: f64, colour: RGBColor, side: HPos) -> Drawn<DB> {
        let style = (font::FAMILY, SIZE_OF_EM * size * self.fine).into_text_style(self.area).color(&colour);
        self.area.draw_text(text, &style.pos(Pos::new(side, VPos::Center)), self.at(at))
    }

    /// Text that reads upwards, its middle at a point.
    fn vertical_text(&self, text: &str, at: (f64, f64), size: f64) -> Drawn<DB> {
        let style = (font::FAMILY, SIZE_OF_EM * size * self.fine)
            .into_text_style(self.area)
            .transform(FontTransform::Rotate270);
        self.area.draw_text(text, &style.pos(Pos::new(HPos::Center, VPos::Center)), self.at(at))
    }
}

fn colour(ink: Ink) -> RGBAColor {
    let (red, green, blue) = ink.rgb();
    RGBColor(red, green, blue).to_rgba()
}

/// A colour for areas that nothing shines through.
fn pale(ink: Ink) -> RGBAColor {
    let (red, green, blue) = ink.rgb();
    let mixed = |channel: u8| ((u16::from(channel) * 3 + 255 * 2) / 5) as u8;
    RGBColor(mixed(red), mixed(green), mixed(blue)).to_rgba()
}

/// The pieces of a line that is drawn for `on` units and left out for `off`, in turn.
fn dashes(points: &[(f64, f64)], on: f64, off: f64) -> Vec<Vec<(f64, f64)>> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::from_iter(points.first().copied()));
    let (mut drawing, mut left) = (true, on);
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let (dx, dy) = (to.0 - from.0, to.1 - from.1);
            let length = dx.hypot(dy);
            if length <= left {
                left -= length;
                if drawing {
                    piece.push(to);
                }
                break;
            }
            from = (from.0 + dx * left / length, from.1 + dy * left / length);
            if drawing {
                piece.push(from);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece.push(from);
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
    }
    if drawing && piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

/// What plotters calls the size of text is this many times its em.
const SIZE_OF_EM: f64 = 1.24;

/// The em of text of a size of plotters.
pub(super) fn em(size: f64) -> f64 {
    size / SIZE_OF_EM
}

/// `text` fit to be drawn: cut where it is wider than `room`.
fn shortened(text: &str, size: f64, room: f64) -> String {
    // What XML cannot hold.
    let is_bad = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    let text = text.replace(is_bad, "\u{fffd}");
    if width(&text, size) <= room {
        return text;
    }
    let ends = text.char_indices().map(|(end, _)| end).take(400);
    let cut = |end: usize| format!("{}…", text[..end].trim_end());
    ends.map(cut).take_while(|text| width(text, size) <= room).last().unwrap_or_default()
}

/// All x of a series, for the range of the axis.
fn xs(series: &Series) -> Vec<f64> {
    match &series.shape {
        Shape::Bars { width, bars } => bars.iter().flat_map(|(x, _)| [x - width / 2.0, x + width / 2.0]).collect(),
        Shape::Line { points, .. } => points.iter().map(|(x, _)| *x).collect(),
        Shape::Points { points, .. } => points.iter().map(|point| point.x).collect(),
        Shape::Band(points) => points.iter().map(|(x, ..)| *x).collect(),
    }
}

/// All y of a series, for the range of the axis. Lower limits can be smaller than any value by many powers of ten, which
/// would leave no room for the values on a logarithmic axis: there they lengthen it by a little at most.
fn ys(series: &Series, scale: Scale) -> Vec<f64> {
    let limit = |low: f64, least: f64| if scale == Scale::Log { low.max(least) } else { low };
    match &series.shape {
        Shape::Bars { bars, .. } => bars.iter().map(|(_, height)| *height).chain([0.0]).collect(),
        Shape::Line { points, .. } => points.iter().map(|(_, y)| *y).collect(),
        Shape::Points { points, .. } => {
            let least = |p: &Estimate| if p.y > 0.0 { 0.1 * p.y } else { p.high };
            points.iter().flat_map(|p| [p.y, limit(p.low, least(p)), p.high]).collect()
        }
        Shape::Band(points) => points.iter().flat_map(|(_, low, high)| [limit(*low, 0.01 * high), *high]).collect(),
    }
}
