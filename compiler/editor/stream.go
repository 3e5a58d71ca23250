package editor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"
)

// Bounds of a message. The text of a configuration has at most 4 MiB; in JSON a byte takes up to six.
const (
	maxMessage = 32 << 20
	maxHeader  = 4096
)

// stream frames the messages of an editor. The one of package jsonrpc2 ends the session at a
// message that is not JSON and reads one of any size; this one replies and goes on.
type stream struct {
	jsonrpc2.ObjectStream // for writing
	in                    *bufio.Reader
}

func newStream(conn io.ReadWriteCloser) *stream {
	return &stream{jsonrpc2.NewBufferedStream(conn, jsonrpc2.VSCodeObjectCodec{}), bufio.NewReaderSize(conn, maxHeader)}
}

// failure is a reply outside of a connection of package jsonrpc2.
type failure struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *jsonrpc2.Error `json:"error"`
}

// ReadObject implements [jsonrpc2.ObjectStream]: it reads the next message that is one.
func (s *stream) ReadObject(v any) error {
	for {
		text, err := s.readFrame()
		if err != nil {
			return err
		}
		err = json.Unmarshal(text, v)
		if err == nil {
			return nil
		}
		reflect.ValueOf(v).Elem().SetZero() // it may have been read in part
		if err := s.refuse(jsonrpc2.CodeInvalidRequest, "%v", err); err != nil {
			return err
		}
	}
}

// readFrame reads the next message that is JSON.
func (s *stream) readFrame() (json.RawMessage, error) {
	for {
		size, err := s.readHeader()
		if err != nil {
			return nil, err
		}
		if size > maxMessage {
			if _, err := io.CopyN(io.Discard, s.in, size); err != nil {
				return nil, err
			}
			if err := s.refuse(jsonrpc2.CodeInvalidRequest, "the message has more than %d MiB", maxMessage>>20); err != nil {
				return nil, err
			}
			continue
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(s.in, text); err != nil {
			return nil, err
		}
		if json.Valid(text) {
			return text, nil
		}
		if err := s.refuse(jsonrpc2.CodeParseError, "the message is not JSON"); err != nil {
			return nil, err
		}
	}
}

// refuse replies to a message whose id is not known.
func (s *stream) refuse(code int64, format string, args ...any) error {
	return s.WriteObject(failure{"2.0", json.RawMessage("null"), &jsonrpc2.Error{Code: code, Message: fmt.Sprintf(format, args...)}})
}

var errHeader = errors.New("the header of a message is not one of the Language Server Protocol")

// readHeader reads up to the empty line and returns the length of the message.
func (s *stream) readHeader() (int64, error) {
	size, lines := int64(-1), 0
	for {
		line, err := s.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return 0, errHeader
		}
		if err != nil {
			if len(line) > 0 || lines > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		if lines++; lines > 64 {
			return 0, errHeader
		}
		field := strings.TrimRight(string(line), "\r\n")
		if field == "" {
			if size < 0 {
				return 0, fmt.Errorf("%w: it has no Content-Length", errHeader)
			}
			return size, nil
		}
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			return 0, fmt.Errorf("%w: %.40q", errHeader, field)
		}
		if strings.EqualFold(name, "Content-Length") {
			if size, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil || size < 0 {
				return 0, fmt.Errorf("%w: Content-Length %.40q", errHeader, value)
			}
		}
	}
}
