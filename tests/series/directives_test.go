package series

import (
	"path"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/directive"
)

// Each directive of an emitted file exists in the systemd of the release: systemd ignores
// others with a line in the log.
func TestDirectivesExistInTheSystemdOfTheRelease(t *testing.T) {
	for _, l := range layers(t) {
		t.Run(l.Release, func(t *testing.T) {
			version, count := facts(t, l).Systemd, 0
			for _, f := range l.Files {
				kind := kindOfFile(f.Path)
				if kind == "" {
					continue
				}
				section := ""
				for number, line := range strings.Split(string(f.Data), "\n") {
					line = strings.TrimSpace(line)
					if strings.HasPrefix(line, "[") {
						section = strings.Trim(line, "[]")
						continue
					}
					name, _, ok := strings.Cut(line, "=")
					if !ok || strings.HasPrefix(line, "#") || section == "" {
						continue
					}
					count++
					if got := directive.Lookup(kind, section+"."+name, version); got.State != directive.Present {
						t.Errorf("%s:%d: systemd %s has no %s in [%s]: %+v", f.Path, number+1, version, name, section, got)
					}
				}
			}
			t.Logf("systemd %s: %d directives", version, count)
			if count < 50 {
				t.Errorf("%d directives were found", count)
			}
		})
	}
}

func kindOfFile(name string) string {
	switch path.Ext(name) {
	case ".service", ".slice", ".timer", ".socket", ".mount", ".target":
		return directive.Unit
	case ".link":
		return directive.Link
	case ".network":
		return directive.Network
	case ".conf":
		if strings.Contains(name, ".service") || strings.Contains(name, ".slice") {
			return directive.Unit
		}
	}
	return ""
}
