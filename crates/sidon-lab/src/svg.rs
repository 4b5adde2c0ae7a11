//! An SVG document, written element by element.
//!
//! Charts here need lines, polygons, circles and text. Written by hand because a chart crate with
//! fonts and pixels (plotters, ab_glyph, dejavu, png) takes 20 seconds of a release build on two
//! cores, and no page of ours shows a bitmap. Coordinates are pixels from the upper left corner.
//! Positions of points have one decimal.

use std::fmt::Write as _;

/// A colour: red, green, blue.
pub type Colour = [u8; 3];
/// A position: pixels from the left, pixels from the top.
pub type At = (f64, f64);

/// The side of a position on which its text lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The text starts at the position.
    Start,
    /// The position is the middle of the text.
    Middle,
    /// The text ends at the position.
    End,
}

/// A document under construction.
#[derive(Debug)]
pub struct Svg {
    body: String,
}

impl Svg {
    /// An empty document. Screen readers read `title`.
    pub fn new((width, height): (u32, u32), title: &str) -> Self {
        let mut body = String::new();
        let _ = writeln!(
            body,
            "<svg role=\"img\" aria-label=\"{}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             xmlns=\"http://www.w3.org/2000/svg\">",
            escape(title)
        );
        Svg { body }
    }

    /// Fills the rectangle between two corners.
    pub fn rectangle(&mut self, (left, top): At, (right, bottom): At, fill: Colour) {
        let (width, height) = (right - left, bottom - top);
        let _ = writeln!(
            self.body,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{}\"/>",
            hex(fill)
        );
    }

    /// Shows `text` while the pointer is over the rectangle between two corners, which stays
    /// invisible.
    pub fn tip(&mut self, (left, top): At, (right, bottom): At, text: &str) {
        let (width, height) = (right - left, bottom - top);
        let _ = writeln!(
            self.body,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"none\" pointer-events=\"all\"><title>{}</title></rect>",
            escape(text)
        );
    }

    /// Joins points by straight lines, `width` pixels wide.
    pub fn line(&mut self, points: impl IntoIterator<Item = At>, stroke: Colour, width: u32) {
        let _ = writeln!(
            self.body,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" points=\"{}\"/>",
            hex(stroke),
            list(points)
        );
    }

    /// Fills the polygon of these corners.
    pub fn polygon(&mut self, corners: impl IntoIterator<Item = At>, fill: Colour) {
        let _ =
            writeln!(self.body, "<polygon fill=\"{}\" points=\"{}\"/>", hex(fill), list(corners));
    }

    /// Draws a circle.
    pub fn circle(&mut self, (x, y): At, radius: u32, stroke: Colour) {
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"none\" stroke=\"{}\" \
             stroke-width=\"2\"/>",
            hex(stroke)
        );
    }

    /// Draws a diagonal cross, `reach` pixels to each side.
    pub fn cross(&mut self, (x, y): At, reach: f64, stroke: Colour) {
        self.line([(x - reach, y - reach), (x + reach, y + reach)], stroke, 2);
        self.line([(x - reach, y + reach), (x + reach, y - reach)], stroke, 2);
    }

    /// Writes a line of text. `at` is the left end, middle or right end of its base line.
    pub fn text(&mut self, at: At, anchor: Anchor, size: u32, fill: Colour, text: &str) {
        self.spans(at, anchor, size, fill, [(0, fill, text)]);
    }

    /// Writes a line of text that runs upwards. `at` is the middle of its base line.
    pub fn text_upwards(&mut self, (x, y): At, size: u32, fill: Colour, text: &str) {
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" font-size=\"{size}\" \
             fill=\"{}\" transform=\"rotate(270, {x:.1}, {y:.1})\">{}</text>",
            hex(fill),
            escape(text)
        );
    }

    /// Writes parts of one line, each a gap in pixels after the one before, a colour and a text.
    pub fn spans<'a>(
        &mut self,
        (x, y): At,
        anchor: Anchor,
        size: u32,
        fill: Colour,
        spans: impl IntoIterator<Item = (u32, Colour, &'a str)>,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" \
             fill=\"{}\">",
            hex(fill)
        );
        for (gap, colour, text) in spans {
            let text = escape(text);
            let _ = if (gap, colour) == (0, fill) {
                write!(self.body, "{text}")
            } else {
                write!(self.body, "<tspan dx=\"{gap}\" fill=\"{}\">{text}</tspan>", hex(colour))
            };
        }
        self.body.push_str("</text>\n");
    }

    /// The document.
    pub fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }
}

fn list(points: impl IntoIterator<Item = At>) -> String {
    let mut list = String::new();
    for (x, y) in points {
        let _ = write!(list, "{x:.1},{y:.1} ");
    }
    list.truncate(list.trim_end().len());
    list
}

fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_escapes_its_texts_and_closes_its_elements() {
        const BLACK: Colour = [0; 3];
        let mut svg = Svg::new((10, 20), "a \"b\"");
        svg.rectangle((0.0, 0.0), (10.0, 20.0), [255; 3]);
        svg.line([(1.0, 2.0), (3.25, 4.0)], BLACK, 2);
        svg.polygon([(1.0, 2.0)], [1, 2, 3]);
        svg.circle((5.0, 5.0), 3, BLACK);
        svg.cross((5.0, 5.0), 1.0, BLACK);
        svg.tip((1.0, 2.0), (3.0, 5.0), "now < then");
        svg.text((1.0, 1.0), Anchor::End, 12, BLACK, "x < y & z");
        svg.text_upwards((1.0, 1.0), 12, BLACK, "<up>");
        svg.spans((1.0, 1.0), Anchor::Start, 12, BLACK, [(0, BLACK, "a"), (4, [9; 3], "b")]);
        let text = svg.finish();
        assert!(text.starts_with("<svg role=\"img\" aria-label=\"a &quot;b&quot;\" width=\"10\""));
        assert!(text.contains(">x &lt; y &amp; z</text>") && text.contains(">&lt;up&gt;</text>"));
        assert!(text.contains("points=\"1.0,2.0 3.2,4.0\"") && text.contains("fill=\"#010203\""));
        assert!(text.contains(">a<tspan dx=\"4\" fill=\"#090909\">b</tspan></text>"), "{text}");
        assert!(text.contains("x=\"1.0\" y=\"2.0\" width=\"2.0\" height=\"3.0\" fill=\"none\""));
        assert!(text.contains("<title>now &lt; then</title></rect>"), "{text}");
        let opened = text.matches('<').count() - text.matches("</").count();
        assert_eq!(opened, text.matches("/>").count() + text.matches("</").count());
        assert!(text.ends_with("</svg>\n"));
    }
}
