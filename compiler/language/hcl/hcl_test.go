package hcl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/conform"
	"github.com/yoctune/yoctune/compiler/language/load"
)

// show writes trees as lines of "path = value @place".
func show(roots []*load.Node) string {
	var b strings.Builder
	var walk func(n *load.Node, path string)
	walk = func(n *load.Node, path string) {
		for _, f := range n.Fields {
			sub := load.PathOf(path, f.Name)
			if v := f.Value; v.Kind != load.Struct {
				fmt.Fprintf(&b, "%s = %s @%s:%d:%d\n", sub, v.Show(), v.Pos.File, v.Pos.Line, v.Pos.Column)
			}
			walk(f.Value, sub)
		}
	}
	for _, r := range roots {
		walk(r, "")
	}
	return b.String()
}

func evaluate(t *testing.T, p load.Program) string {
	t.Helper()
	e := Load(p)
	for _, d := range e.Diagnostics {
		t.Errorf("%s at %s:%d:%d: %s", d.ID, d.Pos.File, d.Pos.Line, d.Pos.Column, d.Message)
	}
	return show(e.Roots)
}

func compareTrees(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// The language's own names are in snake_case; what others named stays.
func TestNamesFollowTheSchema(t *testing.T) {
	compareTrees(t, evaluate(t, load.Program{Files: map[string][]byte{"a.hcl": []byte(`
target "line-camera" {
  memory {
    thp_defrag = "madvise"
    hugepages  = { "2MiB" = 4 }
  }
  network "eth*" {
    napi_defer_hard_irqs = 2
    gro_flush_timeout    = "20us"
  }
  kernel {
    config {
      TCP_CONG_BBR = "m"
    }
    args = { "rcu_nocb_poll" = true, skew_tick = 1 }
  }
  service "my_app.service" {
    memory_max = "1GiB"
    environment {
      LOG_LEVEL = "info"
    }
  }
  pipeline "labels" {
    slo = { latency_p95 = "33ms", min_fps = 30 }
  }
  cpu {
    isolate = null
  }
}
build {
  rm_work = true
  sstate {
    mirror "office" {
      url = "https://sstate.example.com"
    }
  }
}
`)}}), `targets."line-camera".memory.thpDefrag = "madvise" @a.hcl:4:18
targets."line-camera".memory.hugepages."2MiB" = 4 @a.hcl:5:29
targets."line-camera".network."eth*".napiDeferHardIRQs = 2 @a.hcl:8:28
targets."line-camera".network."eth*".groFlushTimeout = "20us" @a.hcl:9:28
targets."line-camera".kernel.config.TCP_CONG_BBR = "m" @a.hcl:13:22
targets."line-camera".kernel.args.rcu_nocb_poll = true @a.hcl:15:32
targets."line-camera".kernel.args.skew_tick = 1 @a.hcl:15:50
targets."line-camera".services."my_app.service".memoryMax = "1GiB" @a.hcl:18:18
targets."line-camera".services."my_app.service".environment.LOG_LEVEL = "info" @a.hcl:20:19
targets."line-camera".pipelines.labels.slo.latencyP95 = "33ms" @a.hcl:24:27
targets."line-camera".pipelines.labels.slo.minFps = 30 @a.hcl:24:45
build.rmWork = true @a.hcl:31:13
build.sstate.mirrors.office.url = "https://sstate.example.com" @a.hcl:34:13
`)
}

// Every field of the schema must have a name of its own in HCL.
func TestNoTwoFieldsShareANameInHCL(t *testing.T) {
	e := &evaluator{tables: map[conform.Shape]*table{}}
	seen := map[conform.Shape]bool{}
	count := 0
	var walk func(sh conform.Shape, path string)
	walk = func(sh conform.Shape, path string) {
		if seen[sh] {
			return
		}
		seen[sh] = true
		table := e.tableOf(sh)
		names := map[string]string{}
		for _, f := range sh.Fields() {
			count++
			name := toSnakeCase(f.Name)
			if old, ok := names[name]; ok && old != f.Name {
				t.Errorf("%s: %s and %s are both %s", path, old, f.Name, name)
			}
			names[name] = f.Name
			if got, ok := table.findField(name); !ok || got.name != f.Name {
				t.Errorf("%s: %s reads as %s", path, name, got.name)
			}
			walk(f.Shape, path+"."+f.Name)
		}
		for kind, k := range table.blocks {
			if other, ok := table.fields[kind]; ok && other.name != k.field {
				t.Errorf("%s: block %s and field %s have one name", path, kind, other.name)
			}
		}
		if values, ok := sh.Values(); ok {
			walk(values, path+"[]")
		}
		if items := sh.Items(); items.IsStruct() {
			walk(items, path+"[]")
		}
	}
	walk(conform.Language().Root(), "")
	if count < 100 {
		t.Errorf("only %d fields of the schema were seen", count)
	}
}

// A value is where it was written, however it came to where it is used.
func TestValuesAreTracedToTheirOrigin(t *testing.T) {
	compareTrees(t, evaluate(t, load.Program{Files: map[string][]byte{
		"a.hcl": []byte(`locals {
  calm = {
    "vm.swappiness"  = 10
    "vm.dirty_ratio" = 15
  }
  fast  = true
  cores = [4, 5]
}
target "a" {
  sysctl = merge(local.calm, { "vm.dirty_ratio" = 20 })
  memory {
    thp = local.fast ? "never" : "always"
    ksm = local.fast
  }
  cpu {
    isolate = local.cores
  }
  services = { for n in ["x", "y"] : "${n}.service" => { nice = 5 } }
}
`)}}), `targets.a.sysctl."vm.dirty_ratio" = 20 @a.hcl:10:51
targets.a.sysctl."vm.swappiness" = 10 @a.hcl:3:24
targets.a.memory.thp = "never" @a.hcl:12:24
targets.a.memory.ksm = true @a.hcl:13:11
targets.a.cpu.isolate = [4, 5] @a.hcl:16:15
targets.a.services."x.service".nice = 5 @a.hcl:18:65
targets.a.services."y.service".nice = 5 @a.hcl:18:65
`)
}

// Columns count bytes, as editors and the other languages have it here.
func TestColumnsCountBytes(t *testing.T) {
	compareTrees(t, evaluate(t, load.Program{Files: map[string][]byte{"a.hcl": []byte("layer { description = \"äöü\" }\nprofile \"ä\" { packages = { \"ö\" = \"x\" } }\n")}}),
		"layer.description = \"äöü\" @a.hcl:1:23\nprofiles.\"ä\".packages.\"ö\" = \"x\" @a.hcl:2:36\n")
}

func TestVariablePrecedence(t *testing.T) {
	p := load.Program{
		Files: map[string][]byte{"a.hcl": []byte(`
variable "cores" {
  type    = list(number)
  default = [1]
}
variable "serial" {
  type = number
}
variable "name" {}
layer {
  name   = var.name
  serial = var.serial
}
module "net" {
  source = "./modules/net"
  buffer = var.serial * 1024
}
profile "p" {
  cpu {
    isolate = var.cores
  }
  sysctl = { "net.core.wmem_max" = module.net.half }
}
`)},
		Root: fstest.MapFS{"modules/net/main.hcl": {Data: []byte(`
variable "buffer" {}
output "half" {
  value = var.buffer / 2
}
profile "net" {
  sysctl = { "net.core.rmem_max" = var.buffer }
}
`)}},
		Vars: map[string]string{"cores": "[4, 5]", "serial": "7", "name": "box"},
	}
	compareTrees(t, evaluate(t, p), `layer.name = "box" @a.hcl:11:12
layer.serial = 7 @a.hcl:12:12
profiles.p.cpu.isolate = [4, 5] @a.hcl:20:15
profiles.p.sysctl."net.core.wmem_max" = 3584 @a.hcl:22:36
profiles.net.sysctl."net.core.rmem_max" = 7168 @modules/net/main.hcl:7:36
`)
}

// Integers are exact however large; nothing passes through a float64.
func TestIntegersAreExact(t *testing.T) {
	compareTrees(t, evaluate(t, load.Program{Files: map[string][]byte{"a.hcl": []byte("profile \"p\" {\n  sysctl = {\n    a = 9007199254740993\n    b = 3 * 3074457345618258603\n    c = 0.5\n    d = 1.0\n    e = -0\n  }\n}\n")}}),
		`profiles.p.sysctl.a = 9007199254740993 @a.hcl:3:9
profiles.p.sysctl.b = 9223372036854775809 @a.hcl:4:9
profiles.p.sysctl.c = 0.5 @a.hcl:5:9
profiles.p.sysctl.d = 1 @a.hcl:6:9
profiles.p.sysctl.e = 0 @a.hcl:7:9
`)
}

// HCL gives "${n}" as the number n; a field for text gets text.
func TestQuotedNumbersAreText(t *testing.T) {
	compareTrees(t, evaluate(t, load.Program{Files: map[string][]byte{"a.hcl": []byte("locals {\n  n = 5\n}\nlayer {\n  serial = \"${local.n}\"\n}\nprofile \"p\" {\n  service \"a.service\" {\n    exec = [\"/bin/a\", \"${local.n}\"]\n    environment {\n      N = \"${local.n}\"\n    }\n  }\n}\n")}}),
		`layer.serial = 5 @a.hcl:5:15
profiles.p.services."a.service".exec = ["/bin/a", "5"] @a.hcl:9:12
profiles.p.services."a.service".environment.N = "5" @a.hcl:11:14
`)
}

func TestLanguageErrorsHavePositions(t *testing.T) {
	for _, c := range []struct{ claim, text, id, at, wantText, help string }{
		{"syntax", "layer {\n  name = \n}\n", "YT0001", "2:10", "", ""},
		{"attribute twice", "layer {\n  name = \"a\"\n  name = \"b\"\n}\n", "YT0105", "3:3", `"name" is given twice`, "keep one"},
		{"key twice", "target \"a\" {\n  sysctl = {\n    \"vm.swappiness\" = 1\n    \"vm.swappiness\" = 2\n  }\n}\n", "YT0105", "4:5", `"vm.swappiness" is given twice`, "keep one"},
		{"key twice in a local", "locals {\n  a = [{b = 1, \"b\" = 2}]\n}\n", "YT0105", "2:16", `"b" is given twice`, "keep one"},
		{"block twice", "layer {}\nlayer {}\n", "YT0105", "2:1", "layer is given twice", "keep one"},
		{"labelled block twice", "target \"a\" {}\ntarget \"b\" {}\ntarget \"a\" {}\n", "YT0105", "3:8", `target "a" is given twice`, "keep one"},
		{"entry as block and attribute", "targets = { a = {} }\ntarget \"a\" {}\n", "YT0105", "2:8", `target "a" is given twice`, "keep one"},
		{"local twice", "locals {\n  a = 1\n}\nlocals {\n  a = 2\n}\n", "YT0105", "5:3", "local.a is defined twice", "keep one"},
		{"label missing", "target {}\n", "YT0001", "1:1", "one label", `target "NAME" { … }`},
		{"label too many", "layer \"a\" {}\n", "YT0001", "1:1", "no label", "layer { … }"},
		{"block misspelt", "profle \"a\" {}\n", "YT0102", "1:1", `unknown block "profle"`, `did you mean "profile"?`},
		{"plural", "targets \"a\" {}\n", "YT0102", "1:1", "unknown block", `target "NAME" { … }`},
		{"value as block", "layer {\n  name {}\n}\n", "YT0102", "2:3", "unknown block", "name = …"},
		{"camelCase", "target \"a\" {\n  memory {\n    thpDefrag = \"x\"\n  }\n}\n", "YT0102", "3:5", `unknown field "thpDefrag"`, `"thp_defrag"`},
		{"camelCase in an object", "target \"a\" {\n  memory = { thpDefrag = \"x\" }\n}\n", "YT0102", "2:14", `unknown field "thpDefrag"`, `"thp_defrag"`},
		{"unquoted text", "target \"a\" {\n  board = orin\n}\n", "YT0005", "2:11", `"orin" is not defined`, "quote it"},
		{"local misspelt", "locals {\n  cores = 1\n}\nlayer {\n  serial = local.core\n}\n", "YT0005", "5:12", "local.core is not defined", `did you mean "cores"?`},
		{"function unknown", "layer {\n  name = uper(\"a\")\n}\n", "YT0005", "2:10", "unknown function", ""},
		{"function that reads a file", "layer {\n  name = file(\"a\")\n}\n", "YT0005", "2:10", "unknown function", "none of them reads files"},
		{"wrong argument", "layer {\n  name = upper([1])\n}\n", "YT0100", "2:16", "invalid function argument", ""},
		{"circle", "locals {\n  a = local.b\n  b = local.c\n  c = local.a\n}\n", "YT0108", "", "depends on itself", "a concrete value"},
		{"variable without a value", "variable \"x\" {}\nlayer {\n  name = var.x\n}\n", "YT0107", "1:1", "var.x has no value", "--var x=VALUE"},
		{"default of another type", "variable \"x\" {\n  type    = number\n  default = \"many\"\n}\nlayer {\n  serial = var.x\n}\n", "YT0101", "3:13", "wrong type for var.x", ""},
		{"number that fills the memory", "layer {\n  serial = 1e999999\n}\n", "YT0106", "2:12", "too large", ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			e := Load(load.Program{Files: map[string][]byte{"a.hcl": []byte(c.text)}})
			i := slices.IndexFunc(e.Diagnostics, func(d diag.Diagnostic) bool { return d.ID == c.id })
			if i < 0 {
				t.Fatalf("got %+v, want %s", e.Diagnostics, c.id)
			}
			d := e.Diagnostics[i]
			if at := fmt.Sprintf("%d:%d", d.Pos.Line, d.Pos.Column); c.at != "" && at != c.at {
				t.Errorf("at %s, want %s", at, c.at)
			}
			if !strings.Contains(d.Message, c.wantText) || !strings.Contains(d.Help, c.help) {
				t.Errorf("message %q, help %q", d.Message, d.Help)
			}
			if strings.Contains(c.claim, "twice") && len(d.Related) != 1 {
				t.Errorf("does not name the other place: %+v", d)
			}
			if len(e.Diagnostics) != 1 {
				t.Errorf("%d diagnostics: %+v", len(e.Diagnostics), e.Diagnostics)
			}
		})
	}
}

func TestNamesInHCL(t *testing.T) {
	for in, want := range map[string]string{
		"napiDeferHardIRQs": "napi_defer_hard_irqs", "latencyP95": "latency_p95", "minFps": "min_fps", "sha256": "sha256",
		"txQueueLen": "tx_queue_len", "hashserve": "hashserve", "rmWork": "rm_work",
	} {
		if got := toSnakeCase(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

// Whatever the text is, loading ends with trees or with errors that say
// something, and never panics. Expressions that compute without bounds are for
// the fuzz target of package sandbox, which runs them in a child.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"layer {\n  name = \"a\"\n}\n", "target \"a\" {\n  use = [\"b\"]\n}\n", "a = { b = [1, null, true, 0.5] }\n",
		"locals {\n  a = local.b\n  b = 1\n}\n", "variable \"x\" {\n  type = list(string)\n}\n", "output \"a\" {}\n", "a = <<E\n${b}\nE\n",
		"module \"m\" {\n  source = \"./m\"\n}\n", "a = b ? c : d\n", "a = \"%{ if true }x%{ endif }\"\n", "a.b = 1\n", "a = b[0][\"c\"].*.d\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 512 || strings.ContainsAny(string(text), "(eE") && strings.ContainsAny(string(text), "(0123456789") || strings.Contains(string(text), "for") {
			return
		}
		e := Load(load.Program{Files: map[string][]byte{"a.hcl": text}, Root: fstest.MapFS{"m/a.hcl": {Data: []byte("output \"x\" {\n  value = 1\n}\n")}}})
		if len(e.Roots) == 0 && len(e.Diagnostics) == 0 {
			t.Errorf("neither a tree nor an error for %q", text)
		}
		for _, d := range e.Diagnostics {
			if d.ID == "" || d.Message == "" {
				t.Errorf("%+v for %q", d, text)
			}
		}
	})
}

// Blocks of Terraform are refused at their line, with the equivalent.
func TestDynamicBlocksAreRefusedWithAdvice(t *testing.T) {
	for _, c := range []struct{ text, at, help string }{
		{"target \"cam\" {\n  dynamic \"service\" {\n    for_each = [\"a\"]\n    content {}\n  }\n}\n", "a.hcl:2:3", "services = { for name in local.names"},
		{"dynamic \"profile\" {\n}\n", "a.hcl:1:1", "profiles = { for name in local.names"},
	} {
		e := Load(load.Program{Files: map[string][]byte{"a.hcl": []byte(c.text)}})
		if len(e.Diagnostics) != 1 {
			t.Fatalf("%d messages: %+v", len(e.Diagnostics), e.Diagnostics)
		}
		d := e.Diagnostics[0]
		if at := fmt.Sprintf("%s:%d:%d", d.Pos.File, d.Pos.Line, d.Pos.Column); at != c.at || d.ID != "YT0102" || !strings.Contains(d.Help, c.help) {
			t.Errorf("%s at %s: %s (%s)", d.ID, at, d.Message, d.Help)
		}
	}
	// The advice of the message works.
	compareTrees(t, evaluate(t, load.Program{Files: map[string][]byte{"a.hcl": []byte("target \"cam\" {\n  services = { for n in [\"a\", \"b\"] : \"${n}.service\" => { memory_max = \"1GiB\" } }\n}\n")}}),
		"targets.cam.services.\"a.service\".memoryMax = \"1GiB\" @a.hcl:2:71\ntargets.cam.services.\"b.service\".memoryMax = \"1GiB\" @a.hcl:2:71\n")
}
