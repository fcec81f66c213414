//! A picture as plain data.

use super::axis::Scale;

/// Bars, lines, points and bands over two axes.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    /// Lines under the title: the parameters. An empty one takes no room.
    pub(super) subtitle: Vec<String>,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// In the order of the legend.
    pub(super) series: Vec<Series>,
}

impl Chart {
    /// The lines under the title that say something.
    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        self.subtitle.iter().map(String::as_str).filter(|line| !line.is_empty())
    }
}

/// What an axis shows.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The quantity with its unit.
    pub(super) label: String,
    pub(super) scale: Scale,
}

/// Marks that belong together.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Its entry in the legend, if it has one.
    pub(super) label: Option<String>,
    pub(super) ink: Ink,
    pub(super) shape: Shape,
}

/// The marks of a series. What has no place on its axis (not finite, or not positive on a logarithmic one) is left out.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Bars from 0, `width` wide in the unit of the x axis: (x, height).
    Bars { width: f64, bars: Vec<(f64, f64)> },
    /// A line through (x, y).
    Line { stroke: Stroke, points: Vec<(f64, f64)> },
    /// Markers with error bars. Where the value has no place, the bar stands alone.
    Points { marker: Marker, points: Vec<Estimate> },
    /// The area between two lines: (x, low, high).
    Band(Vec<(f64, f64, f64)>),
}

/// A value with an interval; one without has the value as both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// How a line is drawn, so that lines differ without colour, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

/// The form of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
}

impl Marker {
    /// All of them, in the order in which series take them.
    pub(super) const ALL: [Self; 4] = [Self::Circle, Self::Square, Self::Triangle, Self::Diamond];
}

/// A colour that people with any colour vision tell from the others (Okabe and Ito, 2008). Their yellow is too pale for
/// lines on white.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Black,
    Blue,
    Vermillion,
    Green,
    Purple,
    Orange,
    Sky,
}

impl Ink {
    /// Those for data, in the order in which series take them; black is for theory.
    pub(super) const DATA: [Self; 6] =
        [Self::Blue, Self::Vermillion, Self::Green, Self::Purple, Self::Orange, Self::Sky];

    /// Red, green, blue.
    pub(super) fn rgb(self) -> (u8, u8, u8) {
        match self {
            Self::Black => (0, 0, 0),
            Self::Blue => (0, 114, 178),
            Self::Vermillion => (213, 94, 0),
            Self::Green => (0, 158, 115),
            Self::Purple => (204, 121, 167),
            Self::Orange => (230, 159, 0),
            Self::Sky => (86, 180, 233),
        }
    }
}
