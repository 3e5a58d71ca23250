// Command media draws the clip of the cascade example: parts on a belt, each with a serial label, as
// raw grey frames, and the labels of each frame in a second file. Both files are committed in this
// folder. The fonts are those of the Go project.
//
//	go run ./examples/cascade/media -o examples/cascade/media
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
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// Geometry of the clip, in pixels.
const (
	width  = 320
	height = 192
)

// label is a label at the place of its left upper corner.
type label struct {
	x, y int
	text string
}

// frames are the labels that are in view.
var frames = [][]label{
	{},
	{{24, 30, "YT-48207"}},
	{{60, 22, "YT-48207"}, {150, 120, "BX-90154"}},
	{{96, 14, "YT-48207"}, {20, 70, "CAM-3317"}, {170, 128, "BX-90154"}},
	{{134, 10, "YT-48207"}, {56, 60, "CAM-3317"}, {190, 110, "BX-90154"}, {16, 142, "LOT-6642"}},
}

func main() {
	dir := flag.String("o", ".", "folder to write belt.grey and belt.txt to")
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
	if err := os.WriteFile(filepath.Join(dir, "belt.grey"), clip, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "belt.txt"), text, 0o644)
}

// render returns the concatenated frames, and a line with the labels of each.
func render() (clip, text []byte, err error) {
	ttf, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, nil, err
	}
	face, err := opentype.NewFace(ttf, &opentype.FaceOptions{Size: 22, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, nil, err
	}
	defer face.Close()
	var b, t bytes.Buffer
	for n, labels := range frames {
		b.Write(frame(face, n, labels).Pix)
		var all []string
		for _, l := range labels {
			all = append(all, l.text)
		}
		fmt.Fprintln(&t, strings.Join(all, " "))
	}
	return b.Bytes(), t.Bytes(), nil
}

// frame draws the labels on the belt, with sensor noise.
func frame(face font.Face, n int, labels []label) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, width, height))
	for y := range height {
		draw.Draw(img, image.Rect(0, y, width, y+1), image.NewUniform(color.Gray{uint8(60 + y/6)}), image.Point{}, draw.Src)
	}
	for _, l := range labels {
		d := font.Drawer{Dst: img, Src: image.NewUniform(color.Gray{26}), Face: face}
		wide := d.MeasureString(l.text).Ceil()
		draw.Draw(img, image.Rect(l.x-8, l.y-6, l.x+wide+8, l.y+32), image.NewUniform(color.Gray{222}), image.Point{}, draw.Src)
		d.Dot = fixed.P(l.x, l.y+21)
		d.DrawString(l.text)
	}
	// A fixed linear congruential sequence, so that every run adds the same noise.
	seed := uint32(2463534242 + n)
	for i := range img.Pix {
		seed = seed*1664525 + 1013904223
		img.Pix[i] = uint8(min(255, max(0, int(img.Pix[i])+int(seed>>29)-4)))
	}
	return img
}
