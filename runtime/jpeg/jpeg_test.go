package jpeg_test

import (
	"bytes"
	"errors"
	"image"
	gojpeg "image/jpeg"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/jpeg"
)

func decoder(t testing.TB) *jpeg.Decoder {
	t.Helper()
	lib, err := jpeg.Open("")
	if err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_SOURCES") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
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
			if err := d.Decode(f, got, w, h); err != nil {
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
			if err := d.Decode(b.Bytes(), out[:len(out)-64], size[0], size[1]); err != nil {
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
		if err := d.Decode(c.data, out, width, 48); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := d.Decode(f, out, 192, 48); err != nil {
		t.Errorf("after damaged frames a good one: %v", err)
	}
	if err := d.Decode(f, out[:10], 192, 48); !errors.Is(err, jpeg.ErrSize) {
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

func TestFilesThatAreNotMotionJPEG(t *testing.T) {
	avi, err := os.ReadFile("testdata/labels420.avi")
	if err != nil {
		t.Fatal(err)
	}
	h264 := bytes.ReplaceAll(avi, []byte("MJPG"), []byte("H264"))
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"empty":             {nil, "it has 0 bytes"},
		"text":              {[]byte("hello"), `begins with "hell"`},
		"another codec":     {h264, `video is "H264"`},
		"headers only":      {avi[:100], "AVI file"},
		"a chunk too large": {append([]byte("RIFF\x10\x00\x00\x00AVI strh"), 0xff, 0xff, 0xff, 0x7f), "damaged header"},
	} {
		if _, err := jpeg.NewMotion(bytes.NewReader(c.data)); !errors.Is(err, jpeg.ErrFormat) && !errors.Is(err, jpeg.ErrTruncated) || !strings.Contains(err.Error(), c.says) {
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
		i.Y[n] = byte(n/1920*3 + n%1920*5 + n*n>>9)
	}
	var data bytes.Buffer
	if err := gojpeg.Encode(&data, i, &gojpeg.Options{Quality: 85}); err != nil {
		b.Fatal(err)
	}
	out := make([]byte, jpeg.I420Bytes(1920, 1080))
	b.Run("planes", func(b *testing.B) {
		for b.Loop() {
			if err := d.Decode(data.Bytes(), out, 1920, 1080); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("go", func(b *testing.B) { // the reference
		for b.Loop() {
			if _, err := gojpeg.Decode(bytes.NewReader(data.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}
