// Package grafana checks the shipped dashboard with Grafana's own types: every field must exist in
// Grafana, down to the options of panels and queries.
//
// It is a separate module, so that yoctune does not depend on Grafana's SDK.
package grafana

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

func readDashboard(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("../../examples/grafana/yoctuned.json")
	if err != nil {
		t.Fatal(err)
	}
	plugins.RegisterDefaultPlugins()
	return b
}

// sdkError returns nil for the SDK's empty error list, which is not a nil error.
func sdkError(err error) error {
	if list, ok := err.(cog.BuildErrors); ok && len(list) == 0 {
		return nil
	}
	return err
}

func TestGrafanaAcceptsEveryFieldOfTheDashboard(t *testing.T) {
	var d dashboard.Dashboard
	if err := sdkError(d.UnmarshalJSONStrict(readDashboard(t))); err != nil {
		t.Fatal(err)
	}
	if err := sdkError(d.Validate()); err != nil {
		t.Error(err)
	}
	seen := map[uint32]bool{}
	type place struct{ x, y uint32 }
	taken := map[place]string{}
	for _, p := range d.Panels {
		panel := p.Panel
		if panel == nil {
			continue
		}
		title := *panel.Title
		if panel.Id == nil || seen[*panel.Id] {
			t.Errorf("panel %q has no unique id", title)
			continue
		}
		seen[*panel.Id] = true
		g := panel.GridPos
		if g == nil || g.X+g.W > 24 {
			t.Errorf("panel %q is not on the grid: %+v", title, g)
			continue
		}
		for x := range g.W {
			for y := range g.H {
				at := place{g.X + x, g.Y + y}
				if other := taken[at]; other != "" {
					t.Fatalf("panels %q and %q overlap", title, other)
				}
				taken[at] = title
			}
		}
	}
	list, err := queries(readDashboard(t))
	if err != nil || len(list) < 20 {
		t.Errorf("Grafana sees %d queries: %v", len(list), err)
	}
	for _, q := range list {
		if q.Expr == "" {
			t.Errorf("a query is empty: %+v", q)
		}
	}
}

// queries reads the queries of panels as Grafana's data source does. The SDK's panels drop them,
// because they treat the empty error list as an error.
func queries(dashboard []byte) ([]prometheus.Dataquery, error) {
	var d struct {
		Panels []struct {
			Targets []json.RawMessage `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(dashboard, &d); err != nil {
		return nil, err
	}
	var out []prometheus.Dataquery
	for _, p := range d.Panels {
		for _, raw := range p.Targets {
			var q prometheus.Dataquery
			if err := sdkError(q.UnmarshalJSONStrict(raw)); err != nil {
				return nil, err
			}
			out = append(out, q)
		}
	}
	return out, nil
}

// Mistakes that the test above must detect.
func TestGrafanaRefusesWhatItDoesNotKnow(t *testing.T) {
	for old, bad := range map[string]string{
		`"gridPos"`: `"gridPosition"`, `"expr"`: `"query_text"`, `"schemaVersion": 39`: `"schemaVersion": "39"`, `"refId"`: `"reference"`,
	} {
		changed := bytes.ReplaceAll(readDashboard(t), []byte(old), []byte(bad))
		var d dashboard.Dashboard
		_, err := queries(changed)
		if err == nil {
			err = sdkError(d.UnmarshalJSONStrict(changed))
		}
		if err == nil {
			t.Errorf("%s in place of %s is taken", bad, old)
		}
	}
}
