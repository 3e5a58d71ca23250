// Command media draws the clip of the video-analytics example: serial labels that pass
// a line camera, as raw NV12 frames, and the text of each frame in a second file. Both
// files are committed in this folder. The fonts are those of the Go project.
//
//	go run ./examples/video-analytics/media -o examples/video-analytics/media
package main

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"os"
	"path/filepath"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// Geometry of the clip, in pixels.
const (
	width  = 192
	height = 48
)

// serials is the text of each frame.
var serials = []string{
	"YT-48207", "YT-48213", "BX-90154", "BX-90155", "CAM-3317", "CAM-3318", "QR-77120",
	"LOT-6642", "LOT-6643", "NX-25.36", "NX-25.37", "HW-81904", "HW-81906", "DK-4400",
	"RPM-1850", "RPM-1900", "TEMP-63C", "ZK-29571", "ZK-29572", "END-2026",
}

func main() {
	dir := flag.String("o", ".", "folder to write serials.nv12 and serials.txt to")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "media:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	clip, text, err := render()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "serials.nv12"), clip, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "serials.txt"), text, 0o644)
}

// render returns the concatenated frames and their texts, one per line.
func render() (clip, text []byte, err error) {
	ttf, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, nil, err
	}
	face, err := opentype.NewFace(ttf, &opentype.FaceOptions{Size: 28, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, nil, err
	}
	defer face.Close()
	var b, t bytes.Buffer
	for n, s := range serials {
		b.Write(nv12(frame(face, n, s)))
		fmt.Fprintln(&t, s)
	}
	return b.Bytes(), t.Bytes(), nil
}

// frame draws one label on a belt. From frame to frame the label moves right and slightly
// up or down. Sensor noise is added.
func frame(face font.Face, n int, text string) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		shade := uint8(52 + y/2)
		draw.Draw(img, image.Rect(0, y, width, y+1), image.NewUniform(color.RGBA{shade, shade + 6, shade + 14, 255}), image.Point{}, draw.Src)
	}
	dx, dy := 2+n%5, n%3-1
	paper := color.RGBA{236, 224, 172, 255}
	draw.Draw(img, image.Rect(dx, 4+dy, width-8+dx, 44+dy), image.NewUniform(paper), image.Point{}, draw.Src)

	d := font.Drawer{Dst: img, Src: image.NewUniform(color.RGBA{24, 26, 34, 255}), Face: face}
	free := width - 8 - d.MeasureString(text).Round()
	d.Dot = fixed.P(dx+free/2, 34+dy)
	d.DrawString(text)

	// A fixed linear congruential sequence, so that every run adds the same noise.
	seed := uint32(2463534242 + n)
	for i := range img.Pix {
		if i%4 == 3 {
			continue
		}
		seed = seed*1664525 + 1013904223
		img.Pix[i] = uint8(min(255, max(0, int(img.Pix[i])+int(seed>>29)-4)))
	}
	return img
}

// nv12 converts img to NV12: BT.601 limited range, chroma averaged over 2×2 pixels.
func nv12(img *image.RGBA) []byte {
	out := make([]byte, 0, width*height*3/2)
	for y := range height {
		for x := range width {
			r, g, b := rgb(img, x, y)
			out = append(out, uint8(16+(66*r+129*g+25*b+128)>>8))
		}
	}
	for y := 0; y < height; y += 2 {
		for x := 0; x < width; x += 2 {
			var r, g, b int
			for _, p := range [4][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
				pr, pg, pb := rgb(img, x+p[0], y+p[1])
				r, g, b = r+pr, g+pg, b+pb
			}
			r, g, b = r/4, g/4, b/4
			out = append(out, uint8(128+(-38*r-74*g+112*b+128)>>8), uint8(128+(112*r-94*g-18*b+128)>>8))
		}
	}
	return out
}

func rgb(img *image.RGBA, x, y int) (r, g, b int) {
	c := img.RGBAAt(x, y)
	return int(c.R), int(c.G), int(c.B)
}
