package check

import (
	"slices"
	"testing"

	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/compiler/language/load"
	"github.com/yoctune/yoctune/compiler/resolve"
	"github.com/yoctune/yoctune/schema/facts/board"
)

func textNode(s string) *load.Node { return &load.Node{Kind: load.String, Text: s} }

// service is a target with one service, as the configuration holds it.
func service(environment map[string]string, exec ...string) *subject {
	env, words := &load.Node{Kind: load.Struct}, &load.Node{Kind: load.List}
	for name, value := range environment {
		env.Fields = append(env.Fields, load.Field{Name: name, Value: textNode(value)})
	}
	for _, w := range exec {
		words.Items = append(words.Items, textNode(w))
	}
	under := func(name string, value *load.Node) *load.Node {
		return &load.Node{Kind: load.Struct, Fields: []load.Field{{Name: name, Value: value}}}
	}
	a := &load.Node{Kind: load.Struct, Fields: []load.Field{{Name: "environment", Value: env}, {Name: "exec", Value: words}}}
	b, _ := board.Lookup("orin-nano-8gb")
	return &subject{Target: &resolve.Target{Config: config.DecodeTarget("", under("services", under("a.service", a))), Board: b}}
}

func TestTensorRTRequestsAreParsed(t *testing.T) {
	for _, c := range []struct {
		claim       string
		environment map[string]string
		exec        []string
		want        []string
	}{
		{"workspace counts MiB", nil, []string{"/usr/bin/trtexec", "--workspace=2048"}, []string{"workspace 2147483648"}},
		{"a pool may have a unit", nil, []string{"trtexec", "--memPoolSize=dlaSRAM:1,workspace:1.5G"}, []string{"workspace 1610612736"}},
		{"a pool without workspace asks for none", nil, []string{"trtexec", "--memPoolSize=dlaSRAM:1"}, []string{"workspace "}},
		{"another program's arguments are its own", nil, []string{"/usr/bin/a", "--useDLACore=1"}, nil},
		{"a core without the DLA is nothing", map[string]string{"ORT_TENSORRT_DLA_CORE": "1"}, nil, nil},
		{"the DLA without a core is the first", map[string]string{"ORT_TENSORRT_DLA_ENABLE": "1"}, nil, []string{"dla 0"}},
		{"a core with the DLA", map[string]string{"ORT_TENSORRT_DLA_ENABLE": "1", "ORT_TENSORRT_DLA_CORE": "1"}, nil, []string{"dla 1"}},
		{"a precision that is off is not asked for", map[string]string{"ORT_TENSORRT_INT8_ENABLE": "0"}, nil, nil},
		{"precisions", nil, []string{"trtexec", "--fp16", "--int8"}, []string{"fp16 ", "int8 "}},
	} {
		var got []string
		for _, r := range service(c.environment, c.exec...).requests() {
			got = append(got, r.what+" "+r.value)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.claim, got, c.want)
		}
	}
}
