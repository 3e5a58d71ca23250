package source

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/engine/core"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
)

// YUV4MPEG2: one header line, then for each frame a line that begins with FRAME, and the planes
// Y, U, V. Parameters are one letter and a value, separated by spaces. Reference: the
// yuv4mpeg(5) manual page of mjpegtools.
const (
	y4mMagic     = "YUV4MPEG2"
	y4mFrame     = "FRAME"
	y4mMaxHeader = 1024 // bytes of a line; common tools write fewer than 128
)

type y4mSource struct {
	stream
	b *bufio.Reader
}

// openY4M reads the header; otherwise is the rate of a stream that does not declare one.
func openY4M(in Input, otherwise frame.Rate) (Source, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	f, err := readY4MHeader(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", frame.ErrFormat, err)
	}
	if f.Rate.Period() == 0 {
		f.Rate = otherwise
	}
	return &y4mSource{stream: stream{f: in, r: b, at: f}, b: b}, nil
}

func (s *y4mSource) ReadFrame(pixels []byte) error {
	line, err := readLine(s.b)
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return s.fill(pixels[:0])
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: incomplete %s line", frame.ErrTruncated, y4mFrame)
	case err != nil:
		return err
	}
	if word, _, _ := strings.Cut(line, " "); word != y4mFrame {
		return fmt.Errorf("%w: a frame header begins with %.16q, not %s", frame.ErrFormat, line, y4mFrame)
	}
	if err := s.fill(pixels); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: 0 of %d bytes", frame.ErrTruncated, len(pixels))
		}
		return err
	}
	return nil
}

// readLine reads up to a newline, which it drops, and at most y4mMaxHeader bytes. At the end of
// the input it returns io.EOF before a line and io.ErrUnexpectedEOF inside one.
func readLine(b *bufio.Reader) (string, error) {
	var line []byte
	for len(line) <= y4mMaxHeader {
		c, err := b.ReadByte()
		if errors.Is(err, io.EOF) && len(line) > 0 {
			return "", io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return string(line), nil
		}
		line = append(line, c)
	}
	return "", fmt.Errorf("%w: a line is longer than %d bytes", frame.ErrFormat, y4mMaxHeader)
}

func readY4MHeader(b *bufio.Reader) (frame.Format, error) {
	line, err := readLine(b)
	if err != nil {
		return frame.Format{}, fmt.Errorf("no %s header: %w", y4mMagic, err)
	}
	fields := strings.Fields(line)
	if len(fields) == 0 || fields[0] != y4mMagic {
		return frame.Format{}, fmt.Errorf("the stream begins with %.16q, not %s", line, y4mMagic)
	}
	f := frame.Format{Pixels: core.I420}
	full := false
	for _, p := range fields[1:] {
		full = full || p == "XCOLORRANGE=FULL"
		if err := readY4MParameter(&f, p[0], p[1:]); err != nil {
			return frame.Format{}, fmt.Errorf("header parameter %.32q: %w", p, err)
		}
	}
	if err := frame.CheckSize(f.Width, f.Height); err != nil {
		return frame.Format{}, err
	}
	f.Matrix = matrixFor(f.Height, full)
	return f, nil
}

// readY4MParameter sets the part of the format that parameter tag of a header gives.
func readY4MParameter(f *frame.Format, tag byte, v string) (err error) {
	switch tag {
	case 'W':
		f.Width, err = strconv.Atoi(v)
	case 'H':
		f.Height, err = strconv.Atoi(v)
	case 'F':
		f.Rate, err = parseRate(v)
	case 'I':
		if v != "p" && v != "?" {
			err = errors.New("interlaced video is not supported; use progressive video")
		}
	case 'C':
		if !strings.HasPrefix(v, "420") || strings.HasPrefix(v, "420p1") {
			err = errors.New("unsupported color space; use 8-bit 4:2:0: 420, 420jpeg, 420mpeg2, 420paldv")
		}
	}
	return err
}

// parseRate parses "30000:1001"; "0:0" means unknown.
func parseRate(s string) (frame.Rate, error) {
	a, b, _ := strings.Cut(s, ":")
	num, err := strconv.ParseUint(a, 10, 31)
	if err != nil {
		return frame.Rate{}, err
	}
	den, err := strconv.ParseUint(b, 10, 31)
	if err != nil {
		return frame.Rate{}, err
	}
	return frame.Rate{Num: int(num), Den: int(den)}, nil
}

// matrixFor guesses the colour matrix of video that does not declare it, as players do: BT.709
// from 720 lines up, BT.601 below.
func matrixFor(height int, full bool) core.Matrix {
	switch {
	case full:
		return core.BT601Full
	case height >= 720:
		return core.BT709Limited
	}
	return core.BT601Limited
}
