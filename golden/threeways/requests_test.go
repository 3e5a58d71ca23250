package threeways

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/yoctune/yoctune/compiler"
)

// examples/serve in HCL and in Jsonnet gives the plan of the example, byte by byte.
func TestRequestsAreOnePlanInEveryLanguage(t *testing.T) {
	const example = "../../examples/serve"
	source, err := os.ReadFile(filepath.Join(example, "config.cue"))
	if err != nil {
		t.Fatal(err)
	}
	// The digests and addresses are written once, in the example.
	value := func(field string, n int) string {
		all := regexp.MustCompile(`(?m)^\s*`+field+`:\s*"(.*)"$`).FindAllStringSubmatch(string(source), -1)
		if n >= len(all) {
			t.Fatalf("the example has %d values of %s", len(all), field)
		}
		return all[n][1]
	}
	model := func(n int, assign, end string) string {
		text := ""
		for _, f := range [][2]string{{"uri", "uri"}, {"archiveSha256", "archive_sha256"}, {"member", "member"}, {"sha256", "sha256"}} {
			name := f[0]
			if assign == " = " {
				name = f[1]
			}
			text += "      " + name + assign + `"` + value(f[0], n) + `"` + end
		}
		return text
	}
	hcl := `layer {
  name        = "scan-station"
  maintainer  = "Platform Team <platform@example.com>"
  description = "Answers which way up a scanned page is, and embeds sentences"
  serial      = 1
}
target "station" {
  board   = "orin-nano-8gb"
  machine = "jetson-orin-nano-devkit"
  release = "scarthgap"
  pipeline "orientation" {
    source {
      kind         = "request"
      format       = "image"
      width        = 224
      height       = 224
      timeout      = "500ms"
      max_requests = 16
    }
    stage "frame" {
      kind   = "preprocess"
      input  = "source"
      width  = 224
      height = 224
      mean   = [0.485, 0.456, 0.406]
      std    = [0.229, 0.224, 0.225]
    }
    stage "classify" {
      kind  = "model"
      input = "frame"
` + model(0, " = ", "\n") + `    }
    stage "side" {
      kind   = "postprocess"
      input  = "classify"
      decode = "argmax"
      labels = "sides.txt"
    }
    slo {
      latency_p99 = "100ms"
    }
    budget {
      memory = "512MiB"
    }
  }
  pipeline "sentences" {
    source {
      kind    = "request"
      format  = "tensor"
      address = "0.0.0.0:8443"
      input "input_ids" {
        dtype = "i64"
        shape = [1, 64]
      }
      input "attention_mask" {
        dtype = "i64"
        shape = [1, 64]
      }
      input "token_type_ids" {
        dtype = "i64"
        shape = [1, 64]
      }
      tls {
        certificate = "/etc/station/server.crt"
        key         = "/etc/station/server.key"
        client_ca   = "/etc/station/clients.crt"
      }
    }
    stage "embed" {
      kind  = "model"
      input = "source"
` + model(1, " = ", "\n") + `    }
    budget {
      memory = "512MiB"
    }
  }
}
`
	jsonnet := `local ids = {dtype: 'i64', shape: [1, 64]};
{
  layer: {
    name: 'scan-station', maintainer: 'Platform Team <platform@example.com>', serial: 1,
    description: 'Answers which way up a scanned page is, and embeds sentences',
  },
  targets: {station: {
    board: 'orin-nano-8gb', machine: 'jetson-orin-nano-devkit', release: 'scarthgap',
    pipelines: {
      orientation: {
        source: {kind: 'request', format: 'image', width: 224, height: 224, timeout: '500ms', maxRequests: 16},
        stages: {
          frame: {kind: 'preprocess', input: 'source', width: 224, height: 224, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]},
          classify: {kind: 'model', input: 'frame',
` + model(0, ": ", ",\n") + `          },
          side: {kind: 'postprocess', input: 'classify', decode: 'argmax', labels: 'sides.txt'},
        },
        slo: {latencyP99: '100ms'}, budget: {memory: '512MiB'},
      },
      sentences: {
        source: {
          kind: 'request', format: 'tensor', address: '0.0.0.0:8443',
          inputs: {input_ids: ids, attention_mask: ids, token_type_ids: ids},
          tls: {certificate: '/etc/station/server.crt', key: '/etc/station/server.key', clientCA: '/etc/station/clients.crt'},
        },
        stages: {embed: {kind: 'model', input: 'source',
` + model(1, ": ", ",\n") + `        }},
        budget: {memory: '512MiB'},
      },
    },
  }},
}
`
	plans := map[string]string{}
	for name, text := range map[string]string{"config.cue": string(source), "config.hcl": hcl, "config.jsonnet": jsonnet} {
		dir := t.TempDir()
		labels, err := os.ReadFile(filepath.Join(example, "sides.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range map[string][]byte{name: []byte(text), "sides.txt": labels} {
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p, err := compiler.Options{Runtime: "../runtime"}.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if p.Report.Failed() {
			t.Fatalf("%s: %s", name, formatReport(t, p))
		}
		doc, _ := p.Document("")
		encoded, err := doc.Encode()
		if err != nil {
			t.Fatal(err)
		}
		plans[name] = string(encoded)
	}
	if plans["config.hcl"] != plans["config.cue"] || plans["config.jsonnet"] != plans["config.cue"] {
		t.Errorf("the plans differ:\n%s\n%s\n%s", plans["config.cue"], plans["config.hcl"], plans["config.jsonnet"])
	}
}
