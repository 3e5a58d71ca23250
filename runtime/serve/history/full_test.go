package history

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/monitor"
)

// SQLite returns the same error at its page limit as for ENOSPC: the database or disk is full.
// Reads still work, and so do writes once there is space.
func TestFullDiskIsReportedUntilThereIsRoom(t *testing.T) {
	s, _, err := Open(t.Context(), filepath.Join(t.TempDir(), "history.db"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	begin := time.Unix(1_800_000_000, 0)
	n := 0
	add := func(samples int) error {
		for range samples {
			watts := int64(n)
			s.Add(&monitor.Sample{Time: begin.Add(time.Duration(n) * time.Second), Rails: []monitor.Rail{{Label: "VDD_IN", Power: &watts}}})
			n++
		}
		return s.Flush(t.Context())
	}
	if err := add(10); err != nil || s.Problem() != "" {
		t.Fatalf("%v %q", err, s.Problem())
	}
	var before string
	if err := s.db.QueryRowContext(t.Context(), "PRAGMA max_page_count").Scan(&before); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // SQLite takes the present size
		t.Fatal(err)
	}
	for range 3 {
		if err := add(1000); err == nil || !strings.Contains(s.Problem(), "disk is full") {
			t.Fatalf("%v %q", err, s.Problem())
		}
		if s.Pending() != 0 {
			t.Fatalf("%d samples are kept in memory", s.Pending())
		}
	}
	points, err := s.Query(t.Context(), "rail VDD_IN", begin, begin.Add(1000*time.Second), 1000)
	if err != nil || len(points) != 10 {
		t.Fatalf("earlier values: %d points, %v", len(points), err)
	}
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA max_page_count = "+before); err != nil {
		t.Fatal(err)
	}
	if err := add(1000); err != nil || s.Problem() != "" {
		t.Fatalf("with free space again: %v %q", err, s.Problem())
	}
}
