package inference

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"unicode/utf8"

	"golang.org/x/image/draw"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// maxPixels bounds a picture before it is decoded: a small file can claim any size.
const maxPixels = 64 << 20

// decodedBytes is the most memory that decoding a picture takes, by its header.
func decodedBytes(file []byte, about image.Config, isJPEG bool) int64 {
	pixels := int64(about.Width) * int64(about.Height)
	each := int64(4)
	switch about.ColorModel {
	case color.GrayModel:
		each = 1
	case color.Gray16Model:
		each = 2
	case color.YCbCrModel:
		each = 3
	case color.RGBA64Model, color.NRGBA64Model:
		each = 8
	}
	if _, ok := about.ColorModel.(color.Palette); ok {
		each = 1
	}
	switch {
	case isJPEG && isProgressive(file):
		each *= 5 // and a coefficient of four bytes for each sample
	case !isJPEG && len(file) > 28 && file[28] != 0:
		each *= 2 // interlaced: the passes are images of their own
	}
	return pixels*each + 1<<20
}

// isProgressive reports whether a JPEG file has a progressive frame, or segments that hide which it has.
func isProgressive(file []byte) bool {
	for at := 2; at+4 <= len(file) && file[at] == 0xff; {
		switch marker := file[at+1]; {
		case marker == 0xff: // filling
			at++
			continue
		case marker == 0xc0 || marker == 0xc1:
			return false
		case marker == 0xc2:
			return true
		}
		at += 2 + int(binary.BigEndian.Uint16(file[at+2:]))
	}
	return true
}

// decode makes rows of the elements that a caller sends as bytes.
func (s *Server) decode(ctx context.Context, want *registry.Sent, data []byte, n int) ([]byte, error) {
	elements, err := SplitBytes(data, n)
	if err != nil {
		return nil, &Error{Invalid, err}
	}
	each := int(want.Bytes())
	rows := make([]byte, each*n)
	for i, element := range elements {
		to := rows[i*each:][:each]
		switch want.Format {
		case registry.TextFormat:
			err = decodeText(element, to)
		default:
			err = s.decodeImage(ctx, element, to, int(want.Shape[2]), int(want.Shape[1]))
		}
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return rows, nil
}

// decodeText copies a text. The zeros after it are its end.
func decodeText(element, to []byte) error {
	switch {
	case len(element) > len(to):
		return Errorf(Invalid, "the text has %d bytes, and at most %d are possible", len(element), len(to))
	case !utf8.Valid(element):
		return Errorf(Invalid, "the text is not UTF-8")
	case bytes.IndexByte(element, 0) >= 0:
		return Errorf(Invalid, "the text has a NUL byte at %d", bytes.IndexByte(element, 0))
	}
	copy(to, element)
	return nil
}

// decodeImage decodes a JPEG or PNG file to rows of red, green and blue bytes, and scales it to
// width and height. The decoders are those of Go, which are memory-safe: strangers choose the bytes.
func (s *Server) decodeImage(ctx context.Context, file, to []byte, width, height int) error {
	decodeConfig, decode := png.DecodeConfig, png.Decode
	isJPEG := bytes.HasPrefix(file, []byte("\xff\xd8\xff"))
	switch {
	case isJPEG:
		decodeConfig, decode = jpeg.DecodeConfig, jpeg.Decode
	case !bytes.HasPrefix(file, []byte("\x89PNG\r\n\x1a\n")):
		return Errorf(Invalid, "the picture is neither a JPEG nor a PNG file")
	}
	about, err := decodeConfig(bytes.NewReader(file))
	if err != nil {
		return Errorf(Invalid, "the picture %w: %w", errDecode, err)
	}
	if about.Width < 1 || about.Height < 1 || about.Width > maxPixels/about.Height {
		return Errorf(TooLarge, "the picture has %dx%d pixels, and at most %d million are decoded", about.Width, about.Height, maxPixels>>20)
	}
	size := decodedBytes(file, about, isJPEG)
	if size > s.o.Pictures {
		return Errorf(TooLarge, "the picture of %dx%d pixels takes up to %d MiB to decode, and at most %d are used: a quarter of budget.memory, up to 256", about.Width, about.Height, size>>20, s.o.Pictures>>20)
	}
	if s.pictures.Acquire(ctx, size) != nil {
		return context.Cause(ctx)
	}
	defer s.pictures.Release(size)
	select {
	case s.decoding <- struct{}{}:
		defer func() { <-s.decoding }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	picture, err := decode(bytes.NewReader(file))
	if err != nil {
		return Errorf(Invalid, "the picture %w: %w", errDecode, err)
	}
	rgba, ok := picture.(*image.RGBA)
	if size := picture.Bounds().Size(); !ok || size.X != width || size.Y != height {
		rgba = image.NewRGBA(image.Rect(0, 0, width, height))
		if size.X == width && size.Y == height {
			draw.Draw(rgba, rgba.Rect, picture, picture.Bounds().Min, draw.Src)
		} else {
			draw.ApproxBiLinear.Scale(rgba, rgba.Rect, picture, picture.Bounds(), draw.Src, nil)
		}
	}
	for y := range height {
		from := rgba.Pix[y*rgba.Stride:]
		row := to[3*width*y:][:3*width]
		for x := range width {
			row[3*x], row[3*x+1], row[3*x+2] = from[4*x], from[4*x+1], from[4*x+2]
		}
	}
	return nil
}
