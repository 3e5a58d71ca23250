package live

import (
	"bufio"
	"errors"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/trace"
)

func FuzzRequest(f *testing.F) {
	f.Add("POST /v1/trace HTTP/1.1\r\nContent-Length: 31\r\n\r\n{\"action\":\"stop\",\"session\":\"s\"}")
	f.Add("GET /v1/trace HTTP/1.0\r\n\r\n")
	f.Add("POST /v1/trace HTTP/1.1\r\nContent-Length: -1\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, body, err := readRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			var s *statusError
			if !errors.As(err, &s) || statusTexts[s.status] == "" {
				t.Fatal(err)
			}
			return
		}
		s := newSessions("p", trace.New(1))
		defer s.close()
		if _, _, err := s.obey(body); err != nil && statusTexts[status(err)] == "" {
			t.Fatal(err)
		}
	})
}

func FuzzChunks(f *testing.F) {
	f.Add("3\r\nabc\r\n0\r\n\r\n")
	f.Add("7fffffff\r\nabc")
	f.Fuzz(func(t *testing.T, text string) {
		var b strings.Builder
		if err := copyChunks(&b, bufio.NewReader(strings.NewReader(text))); err == nil && b.Len() > len(text) {
			t.Fatal("it has more than was sent")
		}
	})
}
