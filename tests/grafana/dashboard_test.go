// Package grafana holds the shipped dashboard against Grafana's own types: every
// field must be one that Grafana knows, down to the options of panels and queries.
//
// It is a module of its own, so that the product does not depend on Grafana's SDK.
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

func shipped(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("../../examples/grafana/yoctuned.json")
	if err != nil {
		t.Fatal(err)
	}
	plugins.RegisterDefaultPlugins()
	return b
}

// complaint is nil for the SDK's empty list of complaints, which is no nil error.
func complaint(err error) error {
	if list, ok := err.(cog.BuildErrors); ok && len(list) == 0 {
		return nil
	}
	return err
}

func TestGrafanaKnowsEveryFieldOfTheDashboard(t *testing.T) {
	var d dashboard.Dashboard
	if err := complaint(d.UnmarshalJSONStrict(shipped(t))); err != nil {
		t.Fatal(err)
	}
	if err := complaint(d.Validate()); err != nil {
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
			t.Errorf("panel %q has no id of its own", title)
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
	list, err := queries(shipped(t))
	if err != nil || len(list) < 20 {
		t.Errorf("Grafana sees %d queries: %v", len(list), err)
	}
	for _, q := range list {
		if q.Expr == "" {
			t.Errorf("a query asks for nothing: %+v", q)
		}
	}
}

// queries reads the panels' queries as Grafana's data source does. The SDK's panels
// drop them: they take the empty list of complaints for one.
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
			if err := complaint(q.UnmarshalJSONStrict(raw)); err != nil {
				return nil, err
			}
			out = append(out, q)
		}
	}
	return out, nil
}

// What the test above would notice.
func TestGrafanaRefusesWhatItDoesNotKnow(t *testing.T) {
	for old, bad := range map[string]string{
		`"gridPos"`: `"gridPosition"`, `"expr"`: `"query_text"`, `"schemaVersion": 39`: `"schemaVersion": "39"`, `"refId"`: `"reference"`,
	} {
		changed := bytes.ReplaceAll(shipped(t), []byte(old), []byte(bad))
		var d dashboard.Dashboard
		_, err := queries(changed)
		if err == nil {
			err = complaint(d.UnmarshalJSONStrict(changed))
		}
		if err == nil {
			t.Errorf("%s in place of %s is taken", bad, old)
		}
	}
}
