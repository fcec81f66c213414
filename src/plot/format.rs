//! Pictures as bytes: SVG, and PNG of the same marks.

use super::PlotError;
use super::chart::Chart;
use super::draw::{Layout, WIDTH};
use super::raster::Raster;
use plotters::prelude::*;
use std::path::Path;

/// Form of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Scalable, its text as text.
    Svg,
    /// 1520 pixels wide, for where SVG is not understood.
    Png,
}

/// Steps of a coordinate a unit in an SVG.
const SVG_FINE: u32 = 10;
/// Pixels a unit in a PNG.
const PNG_PIXELS: u32 = 2;
/// Pixels drawn for one pixel of a PNG in each direction; their mean smooths the edges of areas.
const PNG_FINE: u32 = 3;

impl Format {
    /// The form that the extension of a file's name asks for.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match &*extension {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            _ => None,
        }
    }

    /// The picture of `chart`.
    pub(super) fn render(self, chart: &Chart) -> Result<Vec<u8>, PlotError> {
        let layout = Layout::new(chart);
        match self {
            Self::Svg => svg(&layout),
            Self::Png => png(&layout),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}

fn svg(layout: &Layout<'_>) -> Result<Vec<u8>, PlotError> {
    let (width, height) = (WIDTH * SVG_FINE, layout.height * SVG_FINE);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
        layout.draw(&area, SVG_FINE).map_err(failed)?;
        area.present().map_err(failed)?;
    }
    // Shown at its size in units, whatever the fineness of the coordinates.
    let fine = format!("<svg width=\"{width}\" height=\"{height}\"");
    let rest = text.strip_prefix(&fine).ok_or_else(|| failed("plotters begins an SVG in an unknown way"))?;
    Ok(format!("<svg width=\"{WIDTH}\" height=\"{}\"{rest}", layout.height).into_bytes())
}

fn png(layout: &Layout<'_>) -> Result<Vec<u8>, PlotError> {
    let (width, height) = (WIDTH * PNG_PIXELS, layout.height * PNG_PIXELS);
    let (fine_width, fine_height) = (width * PNG_FINE, height * PNG_FINE);
    let mut fine = vec![0; 3 * fine_width as usize * fine_height as usize];
    {
        let area = Raster::new(&mut fine, (fine_width, fine_height)).into_drawing_area();
        layout.draw(&area, PNG_PIXELS * PNG_FINE).map_err(failed)?;
        area.present().map_err(failed)?;
    }
    let pixels = averaged(&fine, fine_width as usize);

    let mut bytes = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(::png::ColorType::Rgb);
    encoder.set_depth(::png::BitDepth::Eight);
    let dots_a_metre = PNG_PIXELS * 3780; // 96 units an inch, as in SVG
    encoder.set_pixel_dims(Some(::png::PixelDimensions {
        xppu: dots_a_metre,
        yppu: dots_a_metre,
        unit: ::png::Unit::Meter,
    }));
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

/// RGB pixels, each the mean of a square of `PNG_FINE` pixels each way in rows of `width`.
fn averaged(fine: &[u8], width: usize) -> Vec<u8> {
    let side = PNG_FINE as usize;
    let mut pixels = Vec::with_capacity(fine.len() / (side * side));
    for rows in fine.chunks_exact(3 * width * side) {
        for x in (0..width).step_by(side) {
            for channel in 0..3 {
                let square = (0..side).flat_map(|dy| (0..side).map(move |dx| 3 * (dy * width + x + dx) + channel));
                let sum: u32 = square.map(|i| u32::from(rows[i])).sum();
                pixels.push(((sum + PNG_FINE * PNG_FINE / 2) / (PNG_FINE * PNG_FINE)) as u8);
            }
        }
    }
    pixels
}
