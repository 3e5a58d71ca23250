// Package graph draws what a configuration describes, as SVG that stands alone
// or inside a page: pipelines and the order of units as layered graphs, the use
// of cores as lanes, power modes as bars.
//
// Names come from configurations and are hostile: all text goes through one
// escaping function, and nothing of it becomes markup.
package graph

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Style is the style sheet of the drawings. A standalone drawing contains it; a page contains
// it once. Colours follow the page's variables, or the reader's preference for light or dark.
//
//go:embed style.css
var Style string

// Drawing is a picture.
type Drawing struct {
	Title         string // said by screen readers
	width, height float64
	body          bytes.Buffer
}

// Empty reports whether there is nothing to draw.
func (d *Drawing) Empty() bool { return d.body.Len() == 0 }

// Width is how wide the drawing is, in px.
func (d *Drawing) Width() float64 { return d.width }

// Inline is the drawing for a page that has [Style].
func (d *Drawing) Inline() string { return d.svg("") }

// SVG is the drawing as a file.
func (d *Drawing) SVG() []byte {
	return []byte(d.svg("<style>" + Style + "</style>\n"))
}

func (d *Drawing) svg(style string) string {
	w, h := math.Ceil(d.width), math.Ceil(d.height)
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"drawing\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n<title>%s</title>\n%s%s</svg>\n",
		w, h, w, h, escape(d.Title), style, d.body.String())
}

// escape makes text of any bytes: what XML cannot hold becomes U+FFFD, and so do
// the characters that turn the direction of text round.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x2069 || r == 0xfeff {
			return 0xfffd
		}
		return r
	}, s)
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// extendTo enlarges the drawing so that it contains a point.
func (d *Drawing) extendTo(x, y float64) {
	d.width, d.height = max(d.width, x), max(d.height, y)
}

func (d *Drawing) rect(class string, x, y, w, h, radius float64, title string) {
	d.extendTo(x+w+1, y+h+1)
	fmt.Fprintf(&d.body, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.0f\">", class, x, y, w, h, radius)
	if title != "" {
		fmt.Fprintf(&d.body, "<title>%s</title>", escape(title))
	}
	d.body.WriteString("</rect>\n")
}

// text writes one line; anchor is start, middle or end.
func (d *Drawing) text(class, anchor string, x, y float64, s string) {
	w := textWidth(s)
	switch anchor {
	case "start":
		d.extendTo(x+w, y)
	case "middle":
		d.extendTo(x+w/2, y)
	}
	fmt.Fprintf(&d.body, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, anchor, x, y, escape(s))
}

func (d *Drawing) line(class string, x1, y1, x2, y2 float64) {
	d.extendTo(max(x1, x2), max(y1, y2))
	fmt.Fprintf(&d.body, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2)
}

// textWidth estimates the width of a line of 12 px text; wide characters count
// double.
func textWidth(s string) float64 {
	w := 0.0
	for _, r := range s {
		if r >= 0x1100 {
			w += 13
		} else {
			w += 6.9
		}
	}
	return w
}

// short cuts text to what a box can hold.
func short(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
