package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/plan"
	"pgregory.net/rapid"
)

func sealed(t testing.TB, p *plan.Plan) []byte {
	t.Helper()
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func smallPlan() *plan.Plan {
	return &plan.Plan{
		Layer: "vision", Target: "line-camera", Board: "orin-nano-8gb", Release: "scarthgap", L4T: "36.4.0", Serial: 7,
		Settings: []plan.Setting{{
			ID: "sysctl.vm.swappiness", Domain: plan.DomainSysctl, Type: plan.TypeInt, Want: "10",
			Select:  plan.Select{Path: "/proc/sys/vm/swappiness"},
			Compare: plan.Exact, Policy: plan.Enforce, Needs: plan.NeedsNothing,
		}},
	}
}

func TestCanonicalFormIsSortedAndIndented(t *testing.T) {
	got, err := plan.Canonical(map[string]any{
		"b": []int{}, "a": map[string]string{}, "<&>": "<a & b>", "é": nil,
		"list": []any{1, "two", true, map[string]int{"y": -2, "x": math.MaxInt64}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "<&>": "<a & b>",
  "a": {},
  "b": [],
  "list": [
    1,
    "two",
    true,
    {
      "x": 9223372036854775807,
      "y": -2
    }
  ],
  "é": null
}
`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFractionsAreRefused(t *testing.T) {
	for _, v := range []any{0.5, 1e30, map[string]any{"deep": []any{2.25}}} {
		if b, err := plan.Canonical(v); err == nil {
			t.Errorf("%v became %s", v, b)
		}
	}
}

func TestSealedPlanRoundTrips(t *testing.T) {
	p := smallPlan()
	b := sealed(t, p)
	got, err := plan.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v\nwant %+v", got, p)
	}
	if again := sealed(t, got); !bytes.Equal(again, b) {
		t.Errorf("sealing again changed it:\n%s", again)
	}
}

func TestIncompletePlanIsRefused(t *testing.T) {
	good := string(sealed(t, smallPlan()))
	edit := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the plan has no %s", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"a changed value", edit(`"want": "10"`, `"want": "11"`), plan.ErrDigest},
		{"a changed serial", edit(`"serial": 7`, `"serial": 6`), plan.ErrDigest},
		{"a changed digest", edit(`"digest": "sha256:`, `"digest": "sha256:0`), plan.ErrDigest},
		{"no digest", edit(`"digest":`, `"machine":`), plan.ErrDigest},
		{"an added setting", edit(`"settings": [`, `"settings": [{"id":"x"},`), plan.ErrDigest},
		{"an unknown field", edit(`"serial": 7`, `"serial": 7, "surprise": 1`), plan.ErrSyntax},
		{"the next major", edit(plan.Schema, "yoctune.plan/3"), plan.ErrSchema},
		{"a longer major", edit(plan.Schema, "yoctune.plan/20"), plan.ErrSchema},
		{"no schema", edit(`"$schema": "yoctune.plan/2",`, ``), plan.ErrSchema},
		{"a second document", good + good, plan.ErrSyntax},
		{"trailing text", good + "x", plan.ErrSyntax},
		{"nothing", "", plan.ErrSyntax},
		{"null", "null", plan.ErrSchema},
		{"a list", "[]", plan.ErrSyntax},
		{"a wrong type", edit(`"serial": 7`, `"serial": "7"`), plan.ErrSyntax},
		{"a fraction", edit(`"serial": 7`, `"serial": 7.5`), plan.ErrSyntax},
		{"a binary", "\x7fELF\x00", plan.ErrSyntax},
		{"too large", strings.Repeat(" ", plan.MaxSize+1), plan.ErrSyntax},
	} {
		t.Run(c.name, func(t *testing.T) {
			if p, err := plan.Decode(strings.NewReader(c.text)); !errors.Is(err, c.want) || p != nil {
				t.Errorf("%+v, %v; want %v", p, err, c.want)
			}
		})
	}
	for cut := range good[:len(good)-2] { // the last two bytes are "}\n"
		if _, err := plan.Decode(strings.NewReader(good[:cut])); !errors.Is(err, plan.ErrSyntax) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
}

func TestMinorVersionsAreCompatible(t *testing.T) {
	p := smallPlan()
	sealed(t, p)
	p.Schema = plan.Schema + ".3"
	p.Digest = ""
	// The digest covers the schema, so a later writer seals it with its own.
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Decode(bytes.NewReader(b)); !errors.Is(err, plan.ErrDigest) {
		t.Errorf("%v; want only the digest to be wrong", err)
	}
}

// yoctuned 0.1 refuses format 2, and fields of format 1 that it does not have.
func TestOlderFormatHasNoNewerField(t *testing.T) {
	p := smallPlan()
	if err := p.SealAs(1); err != nil {
		t.Fatal(err)
	}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(`"$schema": "yoctune.plan/1"`)) {
		t.Errorf("format 1 is not named:\n%s", b)
	}
	got, err := plan.Decode(bytes.NewReader(b))
	if err != nil || got.Digest == sealedDigest(t, smallPlan()) {
		t.Errorf("%v; the digest is that of format 2: %v", err, got)
	}

	p.Pipelines = map[string]plan.Pipeline{"a": {Start: true}, "b": {}, "c": {Start: true}}
	if err := p.SealAs(1); !errors.Is(err, plan.ErrFormat) || !strings.Contains(err.Error(), "no pipelines.a.start, pipelines.c.start") {
		t.Errorf("%v", err)
	}
	if err := p.Seal(); err != nil {
		t.Error(err)
	}
	p.Schema = "yoctune.plan/1"
	if b, err = p.Encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Decode(bytes.NewReader(b)); !errors.Is(err, plan.ErrSyntax) || !strings.Contains(err.Error(), "format 1 has no pipelines.a.start") {
		t.Errorf("%v", err)
	}
	p.Pipelines = map[string]plan.Pipeline{"a": {Stages: []plan.PipelineStage{
		{Device: "gpu", Preprocess: &plan.Preprocess{Layout: "nchw", DType: "f32"}},
		{Device: "auto", Preprocess: &plan.Preprocess{Layout: "nhwc", DType: "u8"}, ROI: &plan.ROI{}, Post: &plan.Post{Head: "ssd"}},
	}}}
	const newer = `no pipelines.a.stages.1.device "auto", pipelines.a.stages.1.post.head "ssd", pipelines.a.stages.1.preprocess.dtype "u8", pipelines.a.stages.1.preprocess.layout "nhwc", pipelines.a.stages.1.roi`
	if err := p.SealAs(1); err == nil || !strings.Contains(err.Error(), newer) {
		t.Errorf("%v", err)
	}
	for version, want := range map[string]int{"0.1.0": 1, "0.1.7": 1, "0.2.0-dev": 2, "0.10.0": 2, "1.0.0": 2} {
		if got := plan.Format(version); got != want {
			t.Errorf("yoctuned %s reads format %d, want %d", version, got, want)
		}
	}
}

func sealedDigest(t *testing.T, p *plan.Plan) string {
	sealed(t, p)
	return p.Digest
}

// Layout is not content: the digest is over the canonical form.
func TestReformattingAPlanDoesNotBreakItsDigest(t *testing.T) {
	b := sealed(t, smallPlan())
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Decode(&compact); err != nil {
		t.Error(err)
	}
}

// anyText favours what breaks encoders.
func anyText(rt *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"", "<&>", "\u2028", "\"\\", "\x00\n\t", "${@x}", "é", "\U0001f600"}),
	).Draw(rt, label)
}

func anyPlan(rt *rapid.T) *plan.Plan {
	p := &plan.Plan{
		Layer: anyText(rt, "layer"), Target: anyText(rt, "target"), Board: anyText(rt, "board"),
		Serial: rapid.Int64().Draw(rt, "serial"),
	}
	for i := range rapid.IntRange(0, 4).Draw(rt, "settings") {
		p.Settings = append(p.Settings, plan.Setting{
			ID: fmt.Sprintf("sysctl.%d", i), Want: anyText(rt, "want"), Type: anyText(rt, "type"),
			Select:   plan.Select{Path: anyText(rt, "path"), Name: anyText(rt, "name")},
			Optional: rapid.Bool().Draw(rt, "optional"),
		})
	}
	if rapid.Bool().Draw(rt, "power") {
		p.Power = &plan.Power{Default: anyText(rt, "mode"), Modes: []plan.PowerMode{{
			ID: rapid.Int().Draw(rt, "id"), Name: anyText(rt, "name"), Params: []plan.PowerParam{{Value: anyText(rt, "value")}},
		}}}
	}
	if rapid.Bool().Draw(rt, "pipeline") {
		p.Pipelines = map[string]plan.Pipeline{anyText(rt, "pipeline name"): {
			Source: plan.PipelineSource{Kind: "file", Path: anyText(rt, "path")},
			Stages: []plan.PipelineStage{{ID: anyText(rt, "stage")}},
		}}
	}
	return p
}

func TestPlanEncodingRoundTrips(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPlan(rt)
		if err := p.Seal(); err != nil {
			rt.Fatal(err)
		}
		b, err := p.Encode()
		if err != nil {
			rt.Fatal(err)
		}
		got, err := plan.Decode(bytes.NewReader(b))
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(got, p) {
			rt.Fatalf("got %+v\nwant %+v", got, p)
		}
		again, err := got.Encode()
		if err != nil || !bytes.Equal(again, b) {
			rt.Fatalf("%v\n%s\nwas\n%s", err, again, b)
		}
	})
}

func TestCanonicalFormMatchesEncodingJSON(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPlan(rt)
		got, err := plan.Canonical(p)
		if err != nil {
			rt.Fatal(err)
		}
		want, err := plan.CanonicalByJSON(p)
		if err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			rt.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func FuzzDecode(f *testing.F) {
	good := sealed(f, smallPlan())
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add([]byte(`{"$schema":"yoctune.plan/1","digest":""}`))
	f.Add([]byte(`{"$schema":"yoctune.plan/1","settings":null,"pipelines":{"\ud800":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plan.Decode(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, plan.ErrSyntax) && !errors.Is(err, plan.ErrSchema) && !errors.Is(err, plan.ErrDigest) {
				t.Fatalf("%v is not one of the reasons to refuse a plan", err)
			}
			return
		}
		b, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.Decode(bytes.NewReader(b)); err != nil {
			t.Fatalf("accepted, and refused after encoding: %v", err)
		}
	})
}
