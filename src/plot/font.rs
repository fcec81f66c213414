//! The font: measured for the layout of every picture, drawn into a PNG. An SVG only names it.

use ab_glyph::{Font, FontRef, Glyph, ScaleFont, point};

/// The font and its substitutes, as SVG names them. Verdana is as wide, others are narrower.
pub(super) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";
/// Half the height of a small letter, by which text is centred, in em.
const HALF_EX: f32 = 0.5 * 1120.0 / 2048.0;

fn font() -> FontRef<'static> {
    FontRef::try_from_slice(dejavu::sans::regular()).expect("the embedded font is sound")
}

/// The letters of a line of text on a base line at y = 0, and its width.
fn line<'a>(font: &'a FontRef<'static>, text: &'a str, em: f32) -> (Vec<Glyph>, f32) {
    // The scale of ab_glyph is the height of the font.
    let height = font.height_unscaled() / font.units_per_em().unwrap_or(2048.0);
    let font = font.as_scaled(em * height);
    let (mut x, mut glyphs) = (0.0, Vec::new());
    for letter in text.chars() {
        let mut glyph = font.scaled_glyph(letter);
        if let Some(before) = glyphs.last().map(|before: &Glyph| before.id) {
            x += font.kern(before, glyph.id);
        }
        glyph.position = point(x, 0.0);
        x += font.h_advance(glyph.id);
        glyphs.push(glyph);
    }
    (glyphs, x)
}

/// Width of a line of text in the unit of its size `em`.
pub(super) fn width(text: &str, em: f64) -> f64 {
    f64::from(line(&font(), text, em as f32).1)
}

/// Draws a line of text that is `em` pixels large: calls `draw` with each pixel to the right of and below the point where
/// the text begins, at the middle of its small letters, and how much of the pixel is covered.
pub(super) fn draw(text: &str, em: f64, mut draw: impl FnMut(i32, i32, f32)) {
    let font = font();
    let em = em as f32;
    for mut glyph in line(&font, text, em).0 {
        glyph.position.y = HALF_EX * em;
        let Some(outline) = font.outline_glyph(glyph) else { continue };
        let corner = outline.px_bounds().min;
        outline.draw(|x, y, cover| draw(corner.x as i32 + x as i32, corner.y as i32 + y as i32, cover));
    }
}
