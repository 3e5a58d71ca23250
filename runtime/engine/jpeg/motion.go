package jpeg

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Motion reads the frames of a Motion JPEG stream: an AVI file (RIFF, with the OpenDML parts
// of files above 1 GiB), or concatenated images as written by cameras and `ffmpeg -f mjpeg`.
type Motion struct {
	// Num and Den are the frames per second of an AVI file; 0: unknown.
	Num, Den int

	r     *bufio.Reader
	buf   []byte
	limit int
	avi   bool
	begun bool   // the SOI of the next image was read
	back  []byte // read already, but part of the next images
	part  int    // where the latest segment begins in buf
	video string // prefix of the chunk ids of frames
}

// maxFrame is the largest compressed frame, in bytes.
const maxFrame = 64 << 20

// NewMotion reads the headers up to the first frame. The error wraps [ErrFormat].
func NewMotion(r io.Reader) (*Motion, error) {
	m := &Motion{r: bufio.NewReaderSize(r, 64<<10), limit: maxFrame}
	head, err := m.r.Peek(4)
	if len(head) < 4 {
		return nil, fmt.Errorf("%w: only %d bytes: %w", ErrFormat, len(head), err)
	}
	switch {
	case string(head) == "RIFF":
		m.avi = true
		return m, m.openAVI()
	case head[0] == 0xff && head[1] == 0xd8:
		return m, nil
	}
	return nil, fmt.Errorf("%w: the stream begins with %q, which is neither an AVI file nor a JPEG image", ErrFormat, head)
}

// Next returns the next frame. The slice is valid until the next call. Next returns io.EOF
// after the last frame and [ErrTruncated] if the stream ends inside a frame.
func (m *Motion) Next() ([]byte, error) {
	if m.avi {
		return m.nextChunk()
	}
	return m.nextImage()
}

// nextImage reads one image, from SOI to EOI. It skips segments by their length, so that
// the end of an embedded thumbnail does not end the image. An image that was cut in a segment ends
// where the next one begins.
func (m *Motion) nextImage() ([]byte, error) {
	m.buf, m.part = m.buf[:0], 0
	if !m.begun {
		if err := m.seekStart(); err != nil {
			return nil, err
		}
	}
	m.begun = false
	m.buf = append(m.buf, 0xff, startOfImage)
	for {
		code, err := m.marker()
		for err == nil && code == startOfScan {
			if err = m.segment(); err == nil {
				code, err = m.entropy()
			}
		}
		switch {
		case err != nil:
			if m.split(!errors.Is(err, errCut)) {
				return m.buf, nil
			}
			return nil, err
		case code == startOfImage:
			// The image has no EOI; the next one follows.
			m.begun = true
			return m.buf[:len(m.buf)-2], nil
		case code == endOfImage:
			return m.buf, nil
		case code == 0x01, code >= firstRestart && code <= lastRestart:
			continue // no length
		}
		if err := m.segment(); err != nil {
			if m.split(!errors.Is(err, errCut)) {
				return m.buf, nil
			}
			return nil, err
		}
	}
}

// split ends the image at the start of the next one, which begins inside its latest segment, and
// keeps the rest. At the end of the stream, several images may have been taken for the segment.
// Elsewhere it is the last one, so that each byte of a hostile stream is read a few times at most.
func (m *Motion) split(atEnd bool) bool {
	if m.part == 0 {
		return false
	}
	content := m.buf[m.part:]
	at := bytes.LastIndex(content, nextStart)
	if at < 0 {
		return false
	}
	if atEnd || bytes.HasPrefix(content, nextStart) {
		at = bytes.Index(content, nextStart)
	}
	at += m.part
	// What is left of back follows the bytes that were read from it.
	m.back = append(bytes.Clone(m.buf[at+2:]), m.back...)
	m.buf, m.begun = m.buf[:at], true
	return true
}

// nextStart is the beginning of an image: SOI, and the first byte of the next marker.
var nextStart = []byte{0xff, startOfImage, 0xff}

// Markers: ITU-T T.81, table B.1.
const (
	firstRestart = 0xd0
	lastRestart  = 0xd7
	startOfImage = 0xd8
	endOfImage   = 0xd9
	startOfScan  = 0xda

	firstApplication = 0xe0
	lastApplication  = 0xef
	comment          = 0xfe
)

// seekStart skips to the next SOI, over padding and the rest of damaged images.
func (m *Motion) seekStart() error {
	last := byte(0)
	for {
		b, err := m.take()
		if err != nil {
			return err
		}
		if last == 0xff && b == startOfImage {
			return nil
		}
		last = b
	}
}

// take reads a byte.
func (m *Motion) take() (byte, error) {
	if len(m.back) > 0 {
		b := m.back[0]
		m.back = m.back[1:]
		return b, nil
	}
	return m.r.ReadByte()
}

// readByte reads a byte and appends it to the image.
func (m *Motion) readByte() (byte, error) {
	b, err := m.take()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: no end of image after %d bytes", ErrTruncated, len(m.buf))
		}
		return 0, err
	}
	if len(m.buf) >= m.limit {
		return 0, fmt.Errorf("%w: an image of more than %d bytes", ErrFormat, m.limit)
	}
	m.buf = append(m.buf, b)
	return b, nil
}

// marker reads up to the next marker and returns its code.
func (m *Motion) marker() (byte, error) {
	for {
		b, err := m.readByte()
		if err != nil {
			return 0, err
		}
		for b == 0xff {
			if b, err = m.readByte(); err != nil {
				return 0, err
			}
			if b != 0xff && b != 0 {
				return b, nil
			}
		}
	}
}

// segment reads a segment with its length. The error is errCut if another image begins inside it.
func (m *Motion) segment() error {
	code := m.buf[len(m.buf)-1]
	application := code >= firstApplication && code <= lastApplication || code == comment
	m.part = len(m.buf)
	var n int
	for range 2 {
		b, err := m.readByte()
		if err != nil {
			return err
		}
		n = n<<8 | int(b)
	}
	if n > maxTables && !application {
		n = 0 // it means nothing
	}
	for range n - 2 {
		if _, err := m.readByte(); err != nil {
			return err
		}
	}
	return m.findCut(application)
}

// maxTables is more than the longest segment of tables has: eight Huffman tables, 2184 bytes. A
// longer one is damaged, and its length means nothing.
const maxTables = 4096

// errCut means that an image ends inside a segment, where another image begins.
var errCut = errors.New("cut inside a segment")

// findCut looks for the next image inside the segment that was just read, and across its end. Only
// segments of applications contain images, thumbnails, and these end inside the segment.
func (m *Motion) findCut(application bool) error {
	end := len(m.buf)
	for isPrefix(m.buf[end-2:]) { // the end of the segment may divide a start
		if _, err := m.readByte(); err != nil {
			break // the next marker reports it
		}
	}
	content := m.buf[m.part:]
	at := bytes.LastIndex(content, nextStart)
	complete := application && !bytes.HasPrefix(content, nextStart) && at >= 0 && bytes.Contains(content[at:], []byte{0xff, endOfImage})
	if at >= 0 && !complete {
		return errCut
	}
	m.back = append(bytes.Clone(m.buf[end:]), m.back...)
	m.buf = m.buf[:end]
	return nil
}

// isPrefix reports whether b ends in the first one or two bytes of [nextStart].
func isPrefix(b []byte) bool {
	return bytes.HasSuffix(b, nextStart[:1]) && !bytes.HasSuffix(b, nextStart) || bytes.HasSuffix(b, nextStart[:2])
}

// entropy reads entropy-coded data and returns the marker after it. In the data 0xff is
// followed by 0 or is a restart marker.
func (m *Motion) entropy() (code byte, err error) {
	for {
		if code, err = m.marker(); err != nil || code < firstRestart || code > lastRestart {
			return code, err
		}
	}
}

// chunk reads the header of a RIFF chunk.
func (m *Motion) chunk() (id string, size uint32, err error) {
	var head [8]byte
	if _, err := io.ReadFull(m.r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: incomplete chunk header", ErrTruncated)
		}
		return "", 0, err
	}
	return string(head[:4]), binary.LittleEndian.Uint32(head[4:]), nil
}

// skip skips the content of a chunk. Chunks start at even offsets.
func (m *Motion) skip(size uint32) error {
	n := int64(size) + int64(size&1)
	if _, err := io.CopyN(io.Discard, m.r, n); err != nil {
		return fmt.Errorf("%w: incomplete chunk", ErrTruncated)
	}
	return nil
}

// read returns the content of a chunk of at most limit bytes.
func (m *Motion) read(size uint32, limit int) ([]byte, error) {
	if int64(size) > int64(limit) {
		return nil, fmt.Errorf("%w: a chunk of %d bytes", ErrFormat, size)
	}
	// The buffer grows with the data, so that a false size allocates little.
	m.buf = m.buf[:0]
	for rest := int(size) + int(size&1); rest > 0; {
		n := min(rest, 1<<20)
		at := len(m.buf)
		if cap(m.buf)-at < n {
			m.buf = append(make([]byte, 0, 2*at+n), m.buf...)
		}
		m.buf = m.buf[:at+n]
		got, err := io.ReadFull(m.r, m.buf[at:])
		if err != nil {
			if at+got == int(size) { // the last one without padding
				break
			}
			return nil, fmt.Errorf("%w: %d of %d bytes", ErrTruncated, at+got, size)
		}
		rest -= n
	}
	return m.buf[:size], nil
}

// openAVI reads the headers up to the first frame.
func (m *Motion) openAVI() error {
	var stream aviStream
	for {
		id, size, err := m.chunk()
		if err != nil {
			return fmt.Errorf("%w: an AVI file without frames: %w", ErrFormat, err)
		}
		switch id {
		case "RIFF", "LIST":
			frames, err := m.enterList(size)
			if frames || err != nil {
				return err
			}
		case "strh":
			err = m.streamHeader(size, &stream)
		case "strf":
			err = m.streamFormat(size, stream)
		default:
			err = m.skip(size)
		}
		if err != nil {
			return err
		}
	}
}

// aviStream is the stream whose header was read last.
type aviStream struct {
	count int // streams so far
	video bool
	rate  [2]uint32 // frames per second as a fraction
}

// enterList reads the kind of a list and skips lists that are not needed. frames reports
// whether it is the list of frames.
func (m *Motion) enterList(size uint32) (frames bool, err error) {
	var kind [4]byte
	if _, err := io.ReadFull(m.r, kind[:]); err != nil || size < 4 {
		return false, fmt.Errorf("%w: an AVI file that ends in its headers", ErrFormat)
	}
	switch string(kind[:]) {
	case "AVI ", "hdrl", "strl":
		return false, nil
	case "movi":
		if m.video == "" {
			return false, fmt.Errorf("%w: an AVI file without Motion JPEG", ErrFormat)
		}
		return true, nil
	}
	return false, m.skip(size - 4)
}

// streamHeader reads the header of the next stream.
func (m *Motion) streamHeader(size uint32, s *aviStream) error {
	b, err := m.read(size, 1<<16)
	if err != nil || len(b) < 28 {
		return fmt.Errorf("%w: an AVI file with a damaged header", ErrFormat)
	}
	s.video = string(b[:4]) == "vids"
	s.rate = [2]uint32{binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[20:])}
	s.count++
	return nil
}

// streamFormat reads the format of stream s and selects the first video stream.
func (m *Motion) streamFormat(size uint32, s aviStream) error {
	b, err := m.read(size, 1<<16)
	if err != nil || !s.video || m.video != "" {
		return err
	}
	if len(b) < 20 || string(b[16:20]) != "MJPG" && string(b[16:20]) != "mjpg" {
		return fmt.Errorf("%w: the video codec of the AVI file is %.4q; only MJPG is supported", ErrFormat, b[min(16, len(b)):])
	}
	m.video = fmt.Sprintf("%02d", s.count-1)
	if s.rate[0] > 0 && s.rate[1] > 0 && s.rate[0] < 1<<30 && s.rate[1] < 1<<30 {
		m.Num, m.Den = int(s.rate[0]), int(s.rate[1])
	}
	return nil
}

// nextChunk returns the next frame of an AVI file.
func (m *Motion) nextChunk() ([]byte, error) {
	for {
		id, size, err := m.chunk()
		if err != nil {
			return nil, err
		}
		switch {
		case id == "RIFF" || id == "LIST": // of the next part, or of an interleaved record
			var kind [4]byte
			if _, err := io.ReadFull(m.r, kind[:]); err != nil || size < 4 {
				return nil, fmt.Errorf("%w: incomplete list", ErrTruncated)
			}
			switch string(kind[:]) {
			case "AVIX", "movi", "rec ":
			default:
				if err := m.skip(size - 4); err != nil {
					return nil, err
				}
			}
		case id[:2] == m.video && (id[2:] == "dc" || id[2:] == "db") && size > 0: // an empty one repeats the frame before
			return m.read(size, m.limit)
		default:
			if err := m.skip(size); err != nil {
				return nil, err
			}
		}
	}
}
