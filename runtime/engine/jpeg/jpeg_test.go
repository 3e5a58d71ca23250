package jpeg_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	gojpeg "image/jpeg"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/jpeg"
)

func decoder(t testing.TB) *jpeg.Decoder {
	t.Helper()
	lib, err := jpeg.Open("")
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_SOURCES") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v: the decoder is not tested here", err)
	}
	d, err := lib.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func frames(t testing.TB, name string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	m, err := jpeg.NewMotion(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for {
		f, err := m.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(f))
	}
}

// The planes are those that Go's decoder, which shares no code, sees; chroma that is
// sampled more finely is averaged. The files are ffmpeg's.
func TestPlanesAreThoseOfAnotherDecoder(t *testing.T) {
	d := decoder(t)
	for name, count := range map[string]int{"labels420.avi": 3, "labels422.avi": 3, "labels444.mjpeg": 3, "sound.avi": 2} {
		all := frames(t, name)
		if len(all) != count {
			t.Errorf("%s has %d frames", name, len(all))
		}
		for n, f := range all {
			w, h, err := d.Size(f)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, jpeg.I420Bytes(w, h))
			if err := d.Decode(f, got, w, h, 1); err != nil {
				t.Fatal(err)
			}
			i, err := gojpeg.Decode(bytes.NewReader(f))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, name, n, got, i.(*image.YCbCr))
		}
	}
}

func compare(t *testing.T, name string, n int, got []byte, want *image.YCbCr) {
	t.Helper()
	w, h := want.Rect.Dx(), want.Rect.Dy()
	cw, ch := (w+1)/2, (h+1)/2
	worst := 0
	near := func(a byte, b int) { worst = max(worst, int(a)-b, b-int(a)) }
	for y := range h {
		for x := range w {
			near(got[y*w+x], int(want.Y[want.YOffset(x, y)]))
		}
	}
	for p, plane := range [][]byte{want.Cb, want.Cr} {
		at := got[w*h+p*cw*ch:]
		for y := range ch {
			for x := range cw {
				sum, k := 0, 0
				for _, o := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
					if u, v := 2*x+o[0], 2*y+o[1]; u < w && v < h {
						sum += int(plane[want.COffset(u, v)])
						k++
					}
				}
				near(at[y*cw+x], (sum+k/2)/k)
			}
		}
	}
	if worst > 3 { // two decoders round differently
		t.Errorf("%s, frame %d: planes differ by %d", name, n, worst)
	}
}

// Sizes that no camera has, but that must not be read or written outside of.
func TestAnySizeAndSamplingIsDecoded(t *testing.T) {
	d := decoder(t)
	for _, size := range [][2]int{{1, 1}, {2, 2}, {3, 5}, {17, 33}, {31, 16}, {64, 47}} {
		i := image.NewYCbCr(image.Rect(0, 0, size[0], size[1]), image.YCbCrSubsampleRatio420)
		for n := range i.Y {
			i.Y[n] = byte(40 + n%100)
		}
		for n := range i.Cb {
			i.Cb[n], i.Cr[n] = 100, 150
		}
		grey := image.NewGray(i.Rect)
		copy(grey.Pix, i.Y)
		for _, img := range []image.Image{i, grey} {
			var b bytes.Buffer
			if err := gojpeg.Encode(&b, img, &gojpeg.Options{Quality: 95}); err != nil {
				t.Fatal(err)
			}
			out := make([]byte, jpeg.I420Bytes(size[0], size[1])+64)
			for n := range out {
				out[n] = 0xa5
			}
			if err := d.Decode(b.Bytes(), out[:len(out)-64], size[0], size[1], 1); err != nil {
				t.Fatalf("%v: %v", size, err)
			}
			if !bytes.Equal(out[len(out)-64:], bytes.Repeat([]byte{0xa5}, 64)) {
				t.Fatalf("%v: written outside of the frame", size)
			}
			back, err := gojpeg.Decode(bytes.NewReader(b.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			if y, ok := back.(*image.YCbCr); ok {
				compare(t, "odd", 0, out, y)
			} else if out[size[0]*size[1]] != 128 {
				t.Errorf("%v: grey has chroma %d", size, out[size[0]*size[1]])
			}
		}
	}
}

// Decoding a frame at a fraction of its size equals scaling the full frame down, for any
// size and sampling.
func TestAShrunkFrameIsTheWholeOneMadeSmaller(t *testing.T) {
	d := decoder(t)
	for _, shrink := range jpeg.Shrinks {
		for _, size := range [][2]int{{1, 1}, {3, 5}, {12, 7}, {40, 30}} {
			w, h := size[0], size[1]
			// Slow waves, which averaging keeps.
			i := image.NewYCbCr(image.Rect(0, 0, w*shrink, h*shrink), image.YCbCrSubsampleRatio420)
			wave := func(x, y, n int) byte {
				return byte(128 + 90*math.Sin(float64(x*n)/float64(6*shrink))*math.Cos(float64(y)/float64(9*shrink)))
			}
			for y := range h * shrink {
				for x := range w * shrink {
					i.Y[i.YOffset(x, y)] = wave(x, y, 1)
					i.Cb[i.COffset(x, y)], i.Cr[i.COffset(x, y)] = wave(y, x, 1), wave(x, y, 1)
				}
			}
			var b bytes.Buffer
			if err := gojpeg.Encode(&b, i, &gojpeg.Options{Quality: 95}); err != nil {
				t.Fatal(err)
			}
			checkShrunk(t, d, b.Bytes(), w, h, shrink)
		}
	}
	for _, name := range []string{"labels420.avi", "labels422.avi", "labels444.mjpeg"} {
		f := frames(t, name)[0]
		w, h, err := d.Size(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, shrink := range jpeg.Shrinks {
			if w%shrink == 0 && h%shrink == 0 {
				checkShrunk(t, d, f, w/shrink, h/shrink, shrink)
			}
		}
	}
	f := frames(t, "labels420.avi")[0]
	out := make([]byte, jpeg.I420Bytes(192, 48))
	for _, c := range [][3]int{{95, 24, 2}, {64, 16, 3}, {192, 48, 0}, {192, 48, -1}} {
		if err := d.Decode(f, out, c[0], c[1], c[2]); !errors.Is(err, jpeg.ErrSize) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// checkShrunk compares a frame decoded at reduced size with the averages of the full-size frame
// from Go's decoder.
func checkShrunk(t *testing.T, d *jpeg.Decoder, data []byte, w, h, shrink int) {
	t.Helper()
	out := bytes.Repeat([]byte{0xa5}, jpeg.I420Bytes(w, h)+64)
	if err := d.Decode(data, out[:len(out)-64], w, h, shrink); err != nil {
		t.Fatalf("%dx%d of 1/%d: %v", w, h, shrink, err)
	}
	if !bytes.Equal(out[len(out)-64:], bytes.Repeat([]byte{0xa5}, 64)) {
		t.Fatalf("%dx%d of 1/%d: written outside of the frame", w, h, shrink)
	}
	i, err := gojpeg.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	whole := i.(*image.YCbCr)
	at := out
	for n, plane := range [][]byte{whole.Y, whole.Cb, whole.Cr} {
		pw, ph, side := w, h, shrink
		if n > 0 {
			pw, ph, side = (w+1)/2, (h+1)/2, 2*shrink
		}
		off := 0
		for y := range ph {
			for x := range pw {
				sum, count := 0, 0
				for v := y * side; v < min((y+1)*side, h*shrink); v++ {
					for u := x * side; u < min((x+1)*side, w*shrink); u++ {
						o := whole.YOffset(u, v)
						if n > 0 {
							o = whole.COffset(u, v)
						}
						sum, count = sum+int(plane[o]), count+1
					}
				}
				diff := int(at[y*pw+x]) - sum/count
				off += max(diff, -diff)
			}
		}
		if mean := float64(off) / float64(pw*ph); mean > 4 {
			t.Errorf("%dx%d of 1/%d, plane %d: it differs by %.1f", w, h, shrink, n, mean)
		}
		at = at[pw*ph:]
	}
}

func TestDamageIsOfOneFrame(t *testing.T) {
	d := decoder(t)
	f := frames(t, "labels420.avi")[0]
	out := make([]byte, jpeg.I420Bytes(192, 48))
	flipped := bytes.Clone(f)
	for i := len(f) / 2; i < len(f)/2+40; i++ {
		flipped[i] ^= 0x5a
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"truncated":    {f[:len(f)/2], jpeg.ErrData},
		"no data":      {f[:2], jpeg.ErrData},
		"empty":        {nil, jpeg.ErrData},
		"not a JPEG":   {[]byte("hello, this is not one"), jpeg.ErrData},
		"damaged":      {flipped, jpeg.ErrData},
		"another size": {frames(t, "labels444.mjpeg")[0], nil},
	} {
		width := 192
		if name == "another size" {
			width, c.want = 190, jpeg.ErrSize
		}
		if err := d.Decode(c.data, out, width, 48, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := d.Decode(f, out, 192, 48, 1); err != nil {
		t.Errorf("after damaged frames a good one: %v", err)
	}
	if err := d.Decode(f, out[:10], 192, 48, 1); !errors.Is(err, jpeg.ErrSize) {
		t.Errorf("into a small frame: %v", err)
	}
}

// One image that has no end costs itself: the next is found by its beginning.
func TestImagesAfterADamagedOneAreFound(t *testing.T) {
	f := frames(t, "labels444.mjpeg")
	stream := bytes.Join([][]byte{f[0], f[1][:len(f[1])/2], []byte("padding"), f[2]}, nil)
	m, err := jpeg.NewMotion(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]byte
	for {
		b, err := m.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		got = append(got, bytes.Clone(b))
	}
	if len(got) != 3 || !bytes.Equal(got[0], f[0]) || !bytes.Equal(got[2], f[2]) {
		t.Errorf("%d images", len(got))
	}
}

// An image that is cut anywhere costs itself: in tables, in a segment of an application, inside a
// length. Every other image is the same as without it.
func TestAnImageCutAnywhereCostsOnlyItself(t *testing.T) {
	f := frames(t, "labels444.mjpeg")
	header := bytes.Index(f[1], []byte{0xff, 0xda})
	for cut := 2; cut < header+20; cut++ {
		m, err := jpeg.NewMotion(bytes.NewReader(slices.Concat(f[0], f[1][:cut], f[2], f[0])))
		if err != nil {
			t.Fatal(err)
		}
		var got [][]byte
		for {
			b, err := m.Next()
			if err != nil {
				break
			}
			got = append(got, bytes.Clone(b))
		}
		if len(got) != 4 || !bytes.Equal(got[0], f[0]) || !bytes.Equal(got[2], f[2]) || !bytes.Equal(got[3], f[0]) {
			t.Errorf("cut at byte %d of %d: %d images", cut, header, len(got))
		}
	}
}

// A header that the library refuses does not leave the decoder inside the image.
func TestAFrameAfterADamagedHeaderIsDecoded(t *testing.T) {
	d := decoder(t)
	f := frames(t, "labels420.avi")[0]
	want := make([]byte, jpeg.I420Bytes(192, 48))
	if err := d.Decode(f, want, 192, 48, 1); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 2; at < bytes.Index(f, []byte{0xff, 0xda})+12; at++ {
		damaged, got := bytes.Clone(f), make([]byte, len(want))
		damaged[at] ^= 0xff
		if d.Decode(damaged, got, 192, 48, 1) != nil {
			refused++
		}
		if _, _, err := d.Size(damaged[:at]); err == nil && at < 100 {
			t.Errorf("a size in %d bytes", at)
		}
		if err := d.Decode(f, got, 192, 48, 1); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("after a frame with damage at byte %d: %v", at, err)
		}
	}
	if refused < 50 {
		t.Errorf("%d damaged headers were refused", refused)
	}
}

func TestFilesThatAreNotMotionJPEG(t *testing.T) {
	avi, err := os.ReadFile("testdata/labels420.avi")
	if err != nil {
		t.Fatal(err)
	}
	h264 := bytes.ReplaceAll(avi, []byte("MJPG"), []byte("H264"))
	for name, c := range map[string]struct {
		data     []byte
		wantText string
	}{
		"empty":             {nil, "only 0 bytes"},
		"text":              {[]byte("hello"), `begins with "hell"`},
		"another codec":     {h264, `the AVI file is "H264"`},
		"headers only":      {avi[:100], "AVI file"},
		"a chunk too large": {append([]byte("RIFF\x10\x00\x00\x00AVI strh"), 0xff, 0xff, 0xff, 0x7f), "damaged header"},
	} {
		if _, err := jpeg.NewMotion(bytes.NewReader(c.data)); !errors.Is(err, jpeg.ErrFormat) && !errors.Is(err, jpeg.ErrTruncated) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, err := jpeg.NewMotion(bytes.NewReader(avi[:len(avi)-4000]))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; err == nil; n++ {
		_, err = m.Next()
	}
	if !errors.Is(err, jpeg.ErrTruncated) || n < 2 {
		t.Errorf("cut file: %d frames, then %v", n-1, err)
	}
}

func TestAMissingLibraryIsNamedWithItsPackage(t *testing.T) {
	_, err := jpeg.Open("/absent/" + jpeg.Soname)
	if !errors.Is(err, jpeg.ErrNoLibrary) || !strings.Contains(err.Error(), "libturbojpeg0 (Debian) or libturbojpeg (Yocto") {
		t.Errorf("%v", err)
	}
}

func FuzzMotion(f *testing.F) {
	for _, name := range []string{"labels420.avi", "labels444.mjpeg", "sound.avi"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 6000)])
	}
	f.Add([]byte("RIFF\xff\xff\xff\xffAVI LIST\x00\x00\x00\x00movi"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := jpeg.NewMotion(bytes.NewReader(data))
		if err != nil {
			return
		}
		total := 0
		for {
			b, err := m.Next()
			if err != nil {
				return
			}
			if total += len(b); total > len(data) {
				t.Fatalf("frames of %d bytes from %d", total, len(data))
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	d := decoder(b)
	i := image.NewYCbCr(image.Rect(0, 0, 1920, 1080), image.YCbCrSubsampleRatio420)
	for n := range i.Y {
		x, y := float64(n%1920), float64(n/1920) // waves, and as much noise as a camera has
		i.Y[n] = byte(128+60*math.Sin(x/40)*math.Cos(y/25)) + byte(n*n>>9)&7
	}
	var data bytes.Buffer
	if err := gojpeg.Encode(&data, i, &gojpeg.Options{Quality: 85}); err != nil {
		b.Fatal(err)
	}
	out := make([]byte, jpeg.I420Bytes(1920, 1080))
	for _, shrink := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("planes/1-%d", shrink), func(b *testing.B) {
			for b.Loop() {
				if err := d.Decode(data.Bytes(), out, 1920/shrink, 1080/shrink, shrink); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("go", func(b *testing.B) { // the reference
		for b.Loop() {
			if _, err := gojpeg.Decode(bytes.NewReader(data.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}
