package pipeline

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/schema/plan"
)

// file is an open file with the content.
func file(t *testing.T, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "video")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestRawVideoEndsBetweenFramesOrIsTruncated(t *testing.T) {
	size := core.FrameBytes(core.NV12, 4, 2)
	for _, c := range []struct {
		extra int
		want  error
	}{{0, io.EOF}, {1, ErrTruncated}, {size - 1, ErrTruncated}} {
		src, err := openRaw(file(t, make([]byte, 2*size+c.extra)), format{width: 4, height: 2})
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, size)
		for range 2 {
			if err := src.read(buf); err != nil {
				t.Fatal(err)
			}
		}
		if err := src.read(buf); !errors.Is(err, c.want) {
			t.Errorf("%d bytes more: %v", c.extra, err)
		}
		if err := src.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestY4MGivesThePlanesOfEachFrame(t *testing.T) {
	frame := func(v byte) string { return "FRAME\n" + strings.Repeat(string(rune(v)), 4*2+2*2*1) }
	src, err := openY4M(file(t, []byte("YUV4MPEG2 W4 H2 F30000:1001 Ip A1:1 C420jpeg XYSCSS=420JPEG\n"+frame('a')+frame('b'))), rate{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	f := src.format()
	if f.width != 4 || f.height != 2 || f.pixels != core.I420 || f.rate.period() != 33366666*time.Nanosecond {
		t.Errorf("%+v, %v a frame", f, f.rate.period())
	}
	buf := make([]byte, f.bytes())
	for _, want := range "ab" {
		if err := src.read(buf); err != nil || buf[0] != byte(want) || buf[len(buf)-1] != byte(want) {
			t.Errorf("%q: %v", buf, err)
		}
	}
	if err := src.read(buf); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
}

func TestY4MThatIsNotWhatItSays(t *testing.T) {
	for _, c := range []struct{ name, content, says string }{
		{"empty", "", "no YUV4MPEG2 header"},
		{"another file", "RIFF....AVI LIST\n", `begins with "RIFF....AVI LIST"`},
		{"no newline", "YUV4MPEG2 W4 H2", "no YUV4MPEG2 header"},
		{"endless line", "YUV4MPEG2 W4 H2 X" + strings.Repeat("x", 2000) + "\n", "more than 1024 bytes"},
		{"no size", "YUV4MPEG2 F25:1\n", "frames of 0x0"},
		{"negative size", "YUV4MPEG2 W-4 H2\n", "frames of -4x2"},
		{"huge size", "YUV4MPEG2 W99999999999999999999 H2\n", "value out of range"},
		{"large size", "YUV4MPEG2 W100000 H2\n", "each side must be 1 to 16384"},
		{"not a number", "YUV4MPEG2 Wfour H2\n", `"Wfour"`},
		{"4:4:4", "YUV4MPEG2 W4 H2 C444\n", "only 8-bit 4:2:0"},
		{"10 bit", "YUV4MPEG2 W4 H2 C420p10\n", "only 8-bit 4:2:0"},
		{"interlaced", "YUV4MPEG2 W4 H2 It\n", "interlaced"},
		{"rate", "YUV4MPEG2 W4 H2 F25\n", `"F25"`},
	} {
		src, err := openY4M(file(t, []byte(c.content)), rate{})
		if err == nil {
			src.close()
		}
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, c := range []struct {
		name, content string
		want          error
	}{
		{"ends in FRAME", "FRA", ErrTruncated},
		{"ends after FRAME", "FRAME\n", ErrTruncated},
		{"ends in the planes", "FRAME\nabc", ErrTruncated},
		{"not FRAME", "FRAMES\nabcdefghijkl", ErrFormat},
	} {
		src, err := openY4M(file(t, []byte("YUV4MPEG2 W4 H2\n"+c.content)), rate{})
		if err != nil {
			t.Fatal(err)
		}
		if err := src.read(make([]byte, 12)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		src.close()
	}
}

// A reader that waits on a pipe returns when the pipeline is stopped.
func TestInterruptEndsTheWaitForAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	src := &rawSource{stream{f: r, r: r, at: format{width: 4, height: 2}}}
	defer src.close()
	read := make(chan error)
	go func() { read <- src.read(make([]byte, 12)) }()
	src.interrupt()
	if err := <-read; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

func TestSyntheticFramesMove(t *testing.T) {
	src, err := openSynthetic(format{width: 32, height: 16})
	if err != nil {
		t.Fatal(err)
	}
	a, b := make([]byte, src.format().bytes()), make([]byte, src.format().bytes())
	if err := errors.Join(src.read(a), src.read(b)); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(a, b) {
		t.Error("two frames are the same")
	}
}

func FuzzY4MHeader(f *testing.F) {
	f.Add([]byte("YUV4MPEG2 W352 H288 F30000:1001 Ip A128:117 C420jpeg XYSCSS=420JPEG XCOLORRANGE=FULL\n"))
	f.Add([]byte("YUV4MPEG2 W0 H-1 F0:0 C420p10\n"))
	f.Add([]byte("YUV4MPEG2  W1 H1 F1:4294967296\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readY4MHeader(bufio.NewReader(bytes.NewReader(data)))
		if err != nil {
			return
		}
		// What is accepted can be allocated and paced.
		if n := h.bytes(); n < 3 || n > core.MaxSide*core.MaxSide*3/2 {
			t.Errorf("a frame of %d bytes from %q", n, data)
		}
		if h.rate.period() < 0 {
			t.Errorf("period %v from %q", h.rate.period(), data)
		}
	})
}

func TestRecognisedTextIsDecodedGreedily(t *testing.T) {
	labels := []string{"a", "b"}
	// Blank, a, b, and the space that the labels do not list.
	steps := []int{0, 1, 1, 0, 1, 2, 3, 0, 3, 2, 2}
	shape := []int64{1, int64(len(steps)), 4}
	data := make([]float32, len(steps)*4)
	for s, c := range steps {
		data[s*4+c] = 0.8
	}
	decode, err := ctc(shape, labels, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	got := decoded(t, decode, tensor{shape: shape, data: data})
	if len(got) != 1 || got[0].Text != "aab  b" || got[0].Score < 0.79 || got[0].Score > 0.81 {
		t.Errorf("%+v", got)
	}
	if decode, err = ctc(shape, labels, 0.9); err != nil {
		t.Fatal(err)
	}
	if got := decoded(t, decode, tensor{shape: shape, data: data}); len(got) != 0 {
		t.Errorf("below the threshold: %+v", got)
	}
	if _, err := ctc(shape, []string{"a"}, 0); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), "has 1 lines") {
		t.Errorf("%v", err)
	}
	if _, err := ctc([]int64{2, 3}, labels, 0); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), "[2 3]") {
		t.Errorf("%v", err)
	}
}

func decoded(t *testing.T, p post, in tensor) []Result {
	t.Helper()
	got, err := p(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestBestClassesComeFirst(t *testing.T) {
	shape := []int64{1, 3}
	for _, c := range []struct {
		name      string
		data      []float32
		labels    []string
		threshold float32
		top       int
		want      string
	}{
		{"probabilities", []float32{0.2, 0.7, 0.1}, []string{"x", "y", "z"}, 0, 2, "y 0.70, x 0.20"},
		{"logits", []float32{0, 2, 0}, nil, 0, 1, "1 0.79"},
		{"threshold", []float32{0.2, 0.7, 0.1}, nil, 0.5, 3, "1 0.70"},
		{"more than there are", []float32{0.2, 0.7, 0.1}, nil, 0, 9, "1 0.70, 0 0.20, 2 0.10"},
	} {
		decode, err := argmax(shape, c.labels, c.threshold, c.top)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range decoded(t, decode, tensor{shape: shape, data: c.data}) {
			name := r.Label
			if name == "" {
				name = fmt.Sprint(r.Class)
			}
			got = append(got, fmt.Sprintf("%s %.2f", name, r.Score))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
	if _, err := argmax([]int64{1, 4, 3}, nil, 0, 1); !errors.Is(err, ErrPlan) {
		t.Errorf("%v", err)
	}
	if _, err := argmax(shape, []string{"x"}, 0, 1); !errors.Is(err, ErrPlan) {
		t.Errorf("%v", err)
	}
}

func TestCommandGivesFramesAndItsEndCounts(t *testing.T) {
	for _, c := range []struct {
		name, script string
		frames       int
		says         string // of the error after the frames, "" for a good end
	}{
		{"ends well", "printf 'aaaaaaaaaaaabbbbbbbbbbbb'", 2, ""},
		{"ends badly between frames", "printf aaaaaaaaaaaa; echo camera is gone >&2; exit 3", 1, "exit status 3: camera is gone"},
		{"ends badly inside a frame", "printf aaa; echo camera is gone >&2; exit 3", 0, "exit status 3: camera is gone"},
		{"ends inside a frame", "printf aaa", 0, "3 of 12 bytes"},
	} {
		cmd, err := startCommand([]string{"sh", "-c", c.script})
		if err != nil {
			t.Fatal(err)
		}
		src, err := openStream(t.Context(), cmd, plan.PipelineSource{Format: "nv12"}, format{width: 4, height: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 12)
		for range c.frames {
			if err := src.read(buf); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		err = src.read(buf)
		if c.says == "" && !errors.Is(err, io.EOF) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := src.close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := startCommand(nil); !errors.Is(err, ErrPlan) {
		t.Errorf("%v", err)
	}
	if _, err := startCommand([]string{"/absent/camera"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// What the child started ends too: the pipe closes only when nobody holds it.
func TestCommandEndsWithItsChildren(t *testing.T) {
	cmd, err := startCommand([]string{"sh", "-c", "sleep 1000 & sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Close(); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 5*time.Minute { // they sleep for longer
		t.Errorf("it took %v", d)
	}
}
