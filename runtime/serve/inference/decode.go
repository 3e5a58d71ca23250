package inference

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"unicode/utf8"

	"golang.org/x/image/draw"

	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// maxPixels bounds a picture before it is decoded: a small file can claim any size.
const maxPixels = 64 << 20

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
	select {
	case s.decoding <- struct{}{}:
		defer func() { <-s.decoding }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	decodeConfig, decode := png.DecodeConfig, png.Decode
	switch {
	case bytes.HasPrefix(file, []byte("\xff\xd8\xff")):
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
