package sticky_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/sticky"
)

var errFull = errors.New("no space left")

// disk takes room bytes.
type disk struct {
	strings.Builder
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	if len(p) > d.room {
		return 0, errFull
	}
	d.room -= len(p)
	return d.Builder.Write(p)
}

func TestTheFirstLostLineIsReportedAndNothingFollowsIt(t *testing.T) {
	d := &disk{room: 6}
	w := sticky.NewWriter(d)
	for _, line := range []string{"one\n", "three\n", "2\n"} {
		_, _ = io.WriteString(w, line)
	}
	if got := d.String(); got != "one\n" {
		t.Errorf("after the loss the output is %q", got)
	}
	if err := w.Lost(nil); !errors.Is(err, errFull) {
		t.Errorf("Lost = %v, want %v", err, errFull)
	}
	if err := w.Lost(fmt.Errorf("writing the report: %w", errFull)); err != nil {
		t.Errorf("an error that was reported already is reported again: %v", err)
	}
}

func TestOutputThatArrivedIsNoError(t *testing.T) {
	w := sticky.NewWriter(&disk{room: 100})
	_, _ = io.WriteString(w, "fine\n")
	if err := w.Lost(nil); err != nil {
		t.Error(err)
	}
}
