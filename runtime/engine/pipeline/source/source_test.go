package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	registry "github.com/yoctune/yoctune/schema/pipeline"
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

func TestRawVideoMustEndBetweenFrames(t *testing.T) {
	size := core.FrameBytes(core.NV12, 4, 2)
	for _, c := range []struct {
		extra int
		want  error
	}{{0, io.EOF}, {1, frame.ErrTruncated}, {size - 1, frame.ErrTruncated}} {
		src, err := openRaw(file(t, make([]byte, 2*size+c.extra)), frame.Format{Width: 4, Height: 2})
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, size)
		for range 2 {
			if err := src.ReadFrame(buf); err != nil {
				t.Fatal(err)
			}
		}
		if err := src.ReadFrame(buf); !errors.Is(err, c.want) {
			t.Errorf("%d bytes more: %v", c.extra, err)
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestY4MGivesThePlanesOfEachFrame(t *testing.T) {
	coded := func(v byte) string { return "FRAME\n" + strings.Repeat(string(rune(v)), 4*2+2*2*1) }
	src, err := openY4M(file(t, []byte("YUV4MPEG2 W4 H2 F30000:1001 Ip A1:1 C420jpeg XYSCSS=420JPEG\n"+coded('a')+coded('b'))), frame.Rate{})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	f := src.Format()
	if f.Width != 4 || f.Height != 2 || f.Pixels != core.I420 || f.Rate.Period() != 33366666*time.Nanosecond {
		t.Errorf("%+v, %v a frame", f, f.Rate.Period())
	}
	buf := make([]byte, f.Bytes())
	for _, want := range "ab" {
		if err := src.ReadFrame(buf); err != nil || buf[0] != byte(want) || buf[len(buf)-1] != byte(want) {
			t.Errorf("%q: %v", buf, err)
		}
	}
	if err := src.ReadFrame(buf); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
}

func TestMalformedY4MIsRefused(t *testing.T) {
	for _, c := range []struct{ name, content, wantText string }{
		{"empty", "", "no YUV4MPEG2 header"},
		{"another file", "RIFF....AVI LIST\n", `begins with "RIFF....AVI LIST"`},
		{"no newline", "YUV4MPEG2 W4 H2", "no YUV4MPEG2 header"},
		{"endless line", "YUV4MPEG2 W4 H2 X" + strings.Repeat("x", 2000) + "\n", "longer than 1024 bytes"},
		{"no size", "YUV4MPEG2 F25:1\n", "frames of 0x0"},
		{"negative size", "YUV4MPEG2 W-4 H2\n", "frames of -4x2"},
		{"huge size", "YUV4MPEG2 W99999999999999999999 H2\n", "value out of range"},
		{"large size", "YUV4MPEG2 W100000 H2\n", "each side must be 1 to 16384"},
		{"not a number", "YUV4MPEG2 Wfour H2\n", `"Wfour"`},
		{"4:4:4", "YUV4MPEG2 W4 H2 C444\n", "use 8-bit 4:2:0"},
		{"10 bit", "YUV4MPEG2 W4 H2 C420p10\n", "use 8-bit 4:2:0"},
		{"interlaced", "YUV4MPEG2 W4 H2 It\n", "interlaced"},
		{"rate", "YUV4MPEG2 W4 H2 F25\n", `"F25"`},
	} {
		src, err := openY4M(file(t, []byte(c.content)), frame.Rate{})
		if err == nil {
			src.Close()
		}
		if !errors.Is(err, frame.ErrFormat) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, c := range []struct {
		name, content string
		want          error
	}{
		{"ends in FRAME", "FRA", frame.ErrTruncated},
		{"ends after FRAME", "FRAME\n", frame.ErrTruncated},
		{"ends in the planes", "FRAME\nabc", frame.ErrTruncated},
		{"not FRAME", "FRAMES\nabcdefghijkl", frame.ErrFormat},
	} {
		src, err := openY4M(file(t, []byte("YUV4MPEG2 W4 H2\n"+c.content)), frame.Rate{})
		if err != nil {
			t.Fatal(err)
		}
		if err := src.ReadFrame(make([]byte, 12)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		src.Close()
	}
}

// A blocked read returns when the pipeline is stopped.
func TestInterruptEndsTheWaitForAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	src := &rawSource{stream{f: r, r: r, at: frame.Format{Width: 4, Height: 2}}}
	defer src.Close()
	read := make(chan error)
	go func() { read <- src.ReadFrame(make([]byte, 12)) }()
	src.Interrupt()
	if err := <-read; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

func TestSyntheticFramesMove(t *testing.T) {
	src, err := openSynthetic(frame.Format{Width: 32, Height: 16})
	if err != nil {
		t.Fatal(err)
	}
	a, b := make([]byte, src.Format().Bytes()), make([]byte, src.Format().Bytes())
	if err := errors.Join(src.ReadFrame(a), src.ReadFrame(b)); err != nil {
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
		if n := h.Bytes(); n < 3 || n > core.MaxSide*core.MaxSide*3/2 {
			t.Errorf("a frame of %d bytes from %q", n, data)
		}
		if h.Rate.Period() < 0 {
			t.Errorf("period %v from %q", h.Rate.Period(), data)
		}
	})
}

func TestCommandExitStatusIsReported(t *testing.T) {
	for _, c := range []struct {
		name, script string
		frames       int
		wantText     string // of the error after the frames, "" for a good end
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
		src, err := openStream(t.Context(), cmd, plan.PipelineSource{Format: "nv12"}, frame.Format{Width: 4, Height: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 12)
		for range c.frames {
			if err := src.ReadFrame(buf); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		err = src.ReadFrame(buf)
		if c.wantText == "" && !errors.Is(err, io.EOF) || c.wantText != "" && (err == nil || !strings.Contains(err.Error(), c.wantText)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := src.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := startCommand(nil); !errors.Is(err, registry.ErrPlan) {
		t.Errorf("%v", err)
	}
	if _, err := startCommand([]string{"/absent/camera"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// The pipe closes only when no child process holds it.
func TestCloseEndsTheCommandAndItsChildren(t *testing.T) {
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
