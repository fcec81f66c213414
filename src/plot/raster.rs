//! A bitmap that plotters draws on.

use super::font;
use plotters_backend::text_anchor::HPos;
use plotters_backend::{BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind};
use std::convert::Infallible;

/// Pixels in memory. Lines and areas are made of pixels by plotters; letters are placed here, where SVG would have them.
pub(super) struct Raster<'a> {
    /// Red, green, blue of each pixel, row after row.
    pixels: &'a mut [u8],
    size: (u32, u32),
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl<'a> Raster<'a> {
    /// Three bytes a pixel, `size.0` pixels a row, `size.1` rows.
    pub(super) fn new(pixels: &'a mut [u8], size: (u32, u32)) -> Self {
        assert_eq!(pixels.len(), 3 * size.0 as usize * size.1 as usize, "three bytes a pixel");
        Self { pixels, size }
    }
}

impl DrawingBackend for Raster<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    /// Mixes a colour into the pixel at (x, y), if it is in the picture.
    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Drawn {
        let (width, height) = self.size;
        if (0..i64::from(width)).contains(&x.into()) && (0..i64::from(height)).contains(&y.into()) {
            let at = 3 * (y as usize * width as usize + x as usize);
            let (red, green, blue) = colour.rgb;
            // Plotters asks for less than nothing at the right edges of its areas.
            let alpha = colour.alpha.clamp(0.0, 1.0);
            for (old, new) in self.pixels[at..at + 3].iter_mut().zip([red, green, blue]) {
                let mixed = f64::from(*old) + (f64::from(new) - f64::from(*old)) * alpha;
                *old = mixed.round() as u8;
            }
        }
        Ok(())
    }

    /// One line of text, its middle line through `at`, where it begins, is centred or ends.
    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let (em, transform, colour) = (super::draw::em(style.size()), style.transform(), style.color());
        let begin = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -0.5 * font::width(text, em),
            HPos::Right => -font::width(text, em),
        };
        let begin = begin.round() as i32;
        let mut result = Ok(());
        font::draw(text, em, |x, y, cover| {
            let (x, y) = transform.transform(begin + x, y);
            let alpha = colour.alpha * f64::from(cover);
            let drawn = self.draw_pixel((at.0 + x, at.1 + y), BackendColor { alpha, ..colour });
            result = std::mem::replace(&mut result, Ok(())).and(drawn);
        });
        result
    }
}
