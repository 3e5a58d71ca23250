package tailbuf_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/tailbuf"
)

func TestTailIsKept(t *testing.T) {
	var b tailbuf.Buffer
	for range 300 {
		if n, err := b.Write([]byte("é\n")); n != 3 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n, err := b.Write([]byte("why\n")); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	got := b.String()
	if !strings.HasSuffix(got, "é\nwhy") || len(got) > tailbuf.Size || !strings.HasPrefix(got, "é") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
