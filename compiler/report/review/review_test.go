package review

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/schema/plan"
)

// Files is content by path.
type Files map[string][]byte

// list returns the files without meanings, as read from a folder.
func (f Files) list() []emitters.File {
	var out []emitters.File
	for name, data := range f {
		out = append(out, emitters.File{Path: name, Data: data})
	}
	return out
}

const machine = "jetson-orin-nano-devkit"

// newSide is a layer with one target, as the emitters would write it.
func newSide(t *testing.T, p plan.Plan, more Files) Side {
	t.Helper()
	p.Schema, p.Board, p.Machine, p.Release, p.L4T = plan.Schema, "orin-nano-8gb", machine, "scarthgap", "36.5.0"
	if p.Layer == "" {
		p.Layer = "box"
	}
	if p.Target == "" {
		p.Target = "cam"
	}
	if p.Rollback == "" {
		p.Rollback = "keep"
	}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	raw, err := plan.Canonical(p)
	if err != nil {
		t.Fatal(err)
	}
	files := Files{"recipes-yoctune/yoctune-box-config/files/" + machine + "/plan.json": raw}
	for name, data := range more {
		files[name] = data
	}
	return Side{Label: "layer", Files: files.list()}
}

func compared(t *testing.T, was, now Side) *Review {
	t.Helper()
	r, err := Compare(was, now, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sysctlOf(key, want string) plan.Setting {
	return plan.Setting{ID: "sysctl." + key, Domain: plan.DomainSysctl, Type: plan.TypeInt, Want: want, Compare: plan.Exact,
		Policy: plan.Enforce, Needs: plan.NeedsNothing, Select: plan.Select{Path: "/proc/sys/" + strings.ReplaceAll(key, ".", "/")}}
}

func argument(name, want string) plan.Setting {
	return plan.Setting{ID: "kernel.args." + name, Domain: plan.DomainKernel, Type: plan.TypeString, Want: want, Compare: plan.Exact,
		Policy: plan.Report, Needs: plan.NeedsReboot, Select: plan.Select{Class: "cmdline", Name: name}}
}

// What a device needs and what can go wrong, case by case.
func TestNeedsAndRisks(t *testing.T) {
	conf := "conf/yoctune/box.conf"
	unit := "recipes-yoctune/yoctune-box-config/files/" + machine + "/cam.service"
	kernel := "recipes-kernel/linux/files/" + machine + "/yoctune-box.cfg"
	group := "recipes-yoctune/packagegroups/packagegroup-yoctune-box.bb"
	models := func(address, sum string) Files {
		return Files{"recipes-yoctune/yoctune-box-models/yoctune-box-models_1.0.bb": fmt.Appendf(nil, "SRC_URI:append:yoctune-on-%s = \" \\\n    %s;downloadfilename=yoctune-%s;unpack=0 \\\n\"\n", machine, address, sum)}
	}
	mode := func(value, mask string) plan.Plan {
		return plan.Plan{Power: &plan.Power{Table: "extend", Default: "BOX", Modes: []plan.PowerMode{{ID: 3, Name: "BOX", From: "25W",
			Params: []plan.PowerParam{{Param: "TPC_POWER_GATING", Arg: "TPC_PG_MASK", Value: mask}, {Param: "CPU_A78_0", Arg: "MAX_FREQ", Value: value}}}}}}
	}
	for _, c := range []struct {
		name     string
		was, now Side
		need     Need
		risk     Risk
		wantText string
	}{
		{"a sysctl", newSide(t, plan.Plan{Settings: []plan.Setting{sysctlOf("vm.swappiness", "10")}}, nil),
			newSide(t, plan.Plan{Settings: []plan.Setting{sysctlOf("vm.swappiness", "60")}}, nil), noNeed, low, "sysctl vm.swappiness: 10 → 60"},
		{"a sysctl that is gone stays until the next boot", newSide(t, plan.Plan{Settings: []plan.Setting{sysctlOf("vm.swappiness", "10")}}, nil),
			newSide(t, plan.Plan{}, nil), reboot, low, "- sysctl vm.swappiness: 10 → removed"},
		{"unless the plan is taken back on stop", newSide(t, plan.Plan{Rollback: "on-stop", Settings: []plan.Setting{sysctlOf("vm.swappiness", "10")}}, nil),
			newSide(t, plan.Plan{Rollback: "on-stop"}, nil), noNeed, low, "- sysctl vm.swappiness: 10 → removed"},
		{"memory limits", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{Settings: []plan.Setting{sysctlOf("vm.min_free_kbytes", "9")}}, nil),
			noNeed, medium, "+ sysctl vm.min_free_kbytes: 9"},
		{"an argument the boot depends on", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{Settings: []plan.Setting{argument("console", "ttyS9")}}, nil),
			reboot, high, "+ kernel argument console: ttyS9"},
		{"isolation", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{Settings: []plan.Setting{argument("isolcpus", "4-5")}}, nil), reboot, medium, "isolcpus"},
		{"clocks of a mode", newSide(t, mode("100", "240"), nil), newSide(t, mode("200", "240"), nil), noNeed, medium, "CPU_A78_0 MAX_FREQ: 100 kHz → 200 kHz"},
		{"the GPU's mask", newSide(t, mode("100", "240"), nil), newSide(t, mode("100", "252"), nil), reboot, high, "TPC_PG_MASK: 240 → 252"},
		{"a kernel option", newSide(t, plan.Plan{}, Files{kernel: []byte("CONFIG_A=y\n")}), newSide(t, plan.Plan{}, Files{kernel: []byte("# CONFIG_A is not set\n")}),
			reboot, medium, "kernel option CONFIG_A: y → n"},
		{"an option the boot needs", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{}, Files{kernel: []byte("CONFIG_EXT4_FS=m\n")}), reboot, high, "EXT4_FS"},
		{"another kernel", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{}, Files{conf: []byte("PREFERRED_PROVIDER_virtual/kernel:yoctune-on-" + machine + " = \"linux-rt\"\n")}),
			reboot, high, "the BSP's → linux-rt"},
		{"a service", newSide(t, plan.Plan{}, Files{unit: []byte("[Service]\nNice=1\n")}), newSide(t, plan.Plan{}, Files{unit: []byte("[Service]\nNice=2\n")}),
			restart, low, "Service.Nice: 1 → 2"},
		{"a service without its sandbox", newSide(t, plan.Plan{}, Files{unit: []byte("[Service]\nNoNewPrivileges=yes\n")}),
			newSide(t, plan.Plan{}, Files{unit: []byte("[Service]\n")}), restart, high, "Service.NoNewPrivileges: yes → removed"},
		{"a serial that goes back", newSide(t, plan.Plan{Serial: 10}, nil), newSide(t, plan.Plan{Serial: 9}, nil), noNeed, high, "plan serial: 10 → 9"},
		{"a read-only root", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{}, Files{conf: []byte("EXTRA_IMAGE_FEATURES:append = \" read-only-rootfs\"\n")}),
			reflash, high, "+ build EXTRA_IMAGE_FEATURES:append: read-only-rootfs"},
		{"threads of the build", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{}, Files{conf: []byte("BB_NUMBER_THREADS = \"8\"\n")}), build, low, "BB_NUMBER_THREADS: 8"},
		{"a variable of one's own", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{}, Files{conf: []byte("EXTRA_USERS_PARAMS = \"x\"\n")}), reflash, medium, "EXTRA_USERS_PARAMS: x"},
		{"a module that is kept out", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{}, Files{"recipes-yoctune/yoctune-box-config/files/" + machine + "/yoctune-modprobe.conf": []byte("# x\nblacklist nouveau\n")}),
			reboot, low, "+ module nouveau: blacklist"},
		{"a package of every target", newSide(t, plan.Plan{}, Files{group: []byte("RDEPENDS:${PN} = \"\\\n    yoctune-cuda \\\n\"\n")}), newSide(t, plan.Plan{}, nil),
			noNeed, low, "- package yoctune-cuda: install → removed"},
		{"a package of a layer that may be absent", newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{}, Files{"dynamic-layers/meta-python/recipes-yoctune/packagegroups/packagegroup-yoctune-box.bbappend": []byte("RDEPENDS:${PN}:append = \" \\\n    python3-x \\\n\"\n")}),
			noNeed, low, "+ package python3-x: install with the layer meta-python"},
		{"a newer program", newSide(t, plan.Plan{}, Files{"recipes-yoctune/yoctuned/yoctuned_0.1.0.bb": []byte("SRC_URI[sha256sum] = \"aa\"\n")}),
			newSide(t, plan.Plan{}, Files{"recipes-yoctune/yoctuned/yoctuned_0.2.0.bb": []byte("SRC_URI[sha256sum] = \"bb\"\n")}), restart, medium, "~ program yoctuned: 0.1.0 → 0.2.0"},
		{"another program of the same version", newSide(t, plan.Plan{}, Files{"recipes-yoctune/yoctuned/yoctuned_0.1.0.bb": []byte("SRC_URI[sha256sum] = \"aa\"\n")}),
			newSide(t, plan.Plan{}, Files{"recipes-yoctune/yoctuned/yoctuned_0.1.0.bb": []byte("SRC_URI[sha256sum] = \"bb\"\n")}), restart, medium, "sha256: aa → bb"},
		{"a unit of the program", newSide(t, plan.Plan{}, Files{"recipes-yoctune/yoctuned/files/yoctuned.service": []byte("[Service]\nNice=1\n")}),
			newSide(t, plan.Plan{}, Files{"recipes-yoctune/yoctuned/files/yoctuned.service": []byte("[Service]\nNice=2\n")}), restart, medium, "~ program yoctuned.service"},
		{"another model at the same address", newSide(t, plan.Plan{}, models("https://h/a.onnx", "aa")), newSide(t, plan.Plan{}, models("https://h/a.onnx", "bb")), restart, low, "~ model a.onnx: aa → bb"},
		{"the same model from elsewhere", newSide(t, plan.Plan{}, models("https://h/a.onnx", "aa")), newSide(t, plan.Plan{}, models("https://g/a.onnx", "aa")), build, low, "model a.onnx: https://h/a.onnx → https://g/a.onnx"},
		{"memory in units", newSide(t, plan.Plan{Settings: []plan.Setting{{ID: "memory.zram", Domain: plan.DomainMemory, Type: plan.TypeInt, Want: "2147483648", Needs: plan.NeedsReboot}}}, nil),
			newSide(t, plan.Plan{Settings: []plan.Setting{{ID: "memory.zram", Domain: plan.DomainMemory, Type: plan.TypeInt, Want: "3221225472", Needs: plan.NeedsReboot}}}, nil), reboot, low, "zram: 2 GiB → 3 GiB"},
		{"cores by number", newSide(t, plan.Plan{Settings: []plan.Setting{{ID: "irq.default", Domain: plan.DomainIRQ, Type: plan.TypeCPUMask, Want: "3f", Needs: plan.NeedsNothing}}}, nil),
			newSide(t, plan.Plan{Settings: []plan.Setting{{ID: "irq.default", Domain: plan.DomainIRQ, Type: plan.TypeCPUMask, Want: "1,0000000f", Needs: plan.NeedsNothing}}}, nil), noNeed, low, "cores 0-5 → cores 0-3,32"},
	} {
		r := compared(t, c.was, c.now)
		var b strings.Builder
		if err := r.WriteText(&b, false); err != nil {
			t.Fatal(err)
		}
		if r.Need() != c.need || r.Risk() != c.risk || !strings.Contains(b.String(), c.wantText) {
			t.Errorf("%s: needs %v, risk %v\n%s", c.name, r.Need(), r.Risk(), b.String())
		}
	}
}

func TestEveryChangeHasItsLine(t *testing.T) {
	origins := "recipes-yoctune/yoctune-box-config/files/" + machine + "/plan.origins.json"
	at := func(line int) Files {
		return Files{origins: fmt.Appendf(nil, `{"sysctl.vm.swappiness":{"file":"config.cue","line":%d,"column":3}}`, line)}
	}
	setting := []plan.Setting{sysctlOf("vm.swappiness", "10")}
	r := compared(t, newSide(t, plan.Plan{}, nil), newSide(t, plan.Plan{Settings: setting}, at(7)))
	if got := FormatPosition(r.Targets[0].Changes[0].Origin); got != "config.cue:7:3" {
		t.Errorf("added: %q", got)
	}
	r = compared(t, newSide(t, plan.Plan{Settings: setting}, at(9)), newSide(t, plan.Plan{}, nil))
	if got := FormatPosition(r.Targets[0].Changes[0].Origin); got != "config.cue:9:3" {
		t.Errorf("removed: %q, want the line of the old configuration", got)
	}
}

func TestTargetsAddedAndRemoved(t *testing.T) {
	one := newSide(t, plan.Plan{}, nil)
	r := compared(t, Side{Label: "empty"}, one)
	if len(r.Targets) != 1 || r.Targets[0].Kind != Added {
		t.Errorf("%+v", r.Targets)
	}
	r = compared(t, one, Side{Label: "empty"})
	if len(r.Targets) != 1 || r.Targets[0].Kind != Removed {
		t.Errorf("%+v", r.Targets)
	}
	if r := compared(t, one, one); !r.Clean() || r.Changes() != 0 || r.Same != 1 {
		t.Errorf("equal layers: %+v", r)
	}
}

// Changes common to all targets are listed once; a target lists its own.
func TestCommonFilesAreListedOnce(t *testing.T) {
	side := func(values ...string) Side {
		files := Files{}
		for i, v := range values {
			one := newSide(t, plan.Plan{Target: fmt.Sprint("t", i), Settings: []plan.Setting{sysctlOf("vm.swappiness", values[0]), sysctlOf("vm.dirty_ratio", v)}}, nil)
			for _, f := range one.Files {
				files[strings.ReplaceAll(f.Path, machine, fmt.Sprint("m", i))] = f.Data
			}
		}
		return Side{Files: files.list()}
	}
	r := compared(t, side("1", "2", "2"), side("3", "2", "4"))
	var text, md, html strings.Builder
	if err := errors.Join(r.WriteText(&text, false), r.WriteMarkdown(&md), r.WriteHTML(&html)); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{"text": text.String(), "markdown": md.String()} {
		if strings.Count(out, "vm.swappiness") != 1 || strings.Count(out, "vm.dirty_ratio") != 2 {
			t.Errorf("%s:\n%s", name, out)
		}
	}
	if len(r.Shared) != 1 || r.Changes() != 5 || !strings.Contains(text.String(), "target t1 (m1, orin-nano-8gb, scarthgap): the changes of every target; needs") ||
		!strings.Contains(text.String(), "the changes of every target, and 1 more") || !strings.Contains(html.String(), `href="#shared"`) {
		t.Errorf("%d changes, shared %+v\n%s", r.Changes(), r.Shared, text.String())
	}
}

// hostile holds values that could attack the reader of a review.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `javascript:alert(1)`, `</style><script>alert(1)</script>`,
	`</title></svg><script>alert(1)</script>`, "`|<b>x</b>\n# heading\n[a](javascript:alert(1))", "{{.}}", "\x1b[2J\x1b]0;owned\x07", "\u202egnp.exe", "a\x00b",
	"<!--", "]]>", "&#x3c;script&#x3e;", "'; alert(1); //",
}

func hostileReview(t *testing.T) *Review {
	t.Helper()
	now := plan.Plan{Pipelines: map[string]plan.Pipeline{}, Power: &plan.Power{Table: "extend", Default: hostile[0]}}
	files := Files{}
	var text strings.Builder
	for i, h := range hostile {
		s := sysctlOf(fmt.Sprintf("a%d.", i)+h, h)
		now.Settings = append(now.Settings, s)
		now.Power.Modes = append(now.Power.Modes, plan.PowerMode{ID: i, Name: h, From: h, Params: []plan.PowerParam{{Param: h, Arg: "MAX_FREQ", Value: h}, {Param: "CPU", Arg: "MAX_FREQ", Value: "5"}}})
		now.Pipelines[h] = plan.Pipeline{CPUs: h, Source: plan.PipelineSource{Kind: h, Path: h, Format: h}, Sink: plan.PipelineSink{Kind: h},
			Stages: []plan.PipelineStage{{ID: h, Kind: h, Input: "source", Model: &plan.Model{Path: h}}}}
		files["recipes-yoctune/x/files/"+machine+"/"+strings.ReplaceAll(h, "/", "_")+".service"] = []byte("[Unit]\nAfter=" + h + "\n[Service]\nExecStart=" + h + "\nSlice=" + h + "\n")
		text.WriteString(h + "\n")
	}
	files["conf/yoctune/"+hostile[0]+".conf"] = []byte(text.String())
	files["recipes-kernel/linux/files/"+machine+"/x.cfg"] = []byte("CONFIG_" + hostile[1] + "=" + hostile[0] + "\n")
	was := newSide(t, plan.Plan{}, nil)
	was.Label = hostile[1]
	return compared(t, was, newSide(t, now, files))
}

// Nothing of a value becomes markup: besides the page's own two blocks there is
// no script, no style, no handler, no address and no comment.
func TestPageEscapesHostileValues(t *testing.T) {
	var b bytes.Buffer
	if err := hostileReview(t).WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for what, pattern := range map[string]string{
		"script": `(?i)<script`, "style": `(?i)<style`,
	} {
		if n := len(regexp.MustCompile(pattern).FindAllString(html, -1)); n != 1 {
			t.Errorf("%d of %s, want the page's own", n, what)
		}
	}
	tags := regexp.MustCompile(`<[a-zA-Z][^>]*>`).FindAllString(html, -1)
	for _, tag := range tags {
		if regexp.MustCompile(`(?i)^<(img|iframe|object|embed|link|base|form)|\son[a-z]+\s*=|\ssrc\s*=|\sstyle\s*=`).MatchString(tag) {
			t.Errorf("a value became markup: %.200s", tag)
		}
		if href := regexp.MustCompile(`href="([^"]*)"`).FindStringSubmatch(tag); href != nil && !strings.HasPrefix(href[1], "#") {
			t.Errorf("a link out of the page: %s", tag)
		}
	}
	if strings.Contains(html, "<b>x") || strings.Contains(html, "<!--") || strings.ContainsAny(html, "\x00\x1b\u202e") {
		t.Error("a comment, a control character or a turned direction came through")
	}
	if !strings.Contains(html, "default-src &#39;none&#39;") && !strings.Contains(html, "default-src 'none'") {
		t.Error("the page has no policy")
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1) {
		if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
			t.Errorf("a drawing is not XML: %v", err)
		}
	}
}

func TestMarkdownAndTerminalAreSafeFromHostileValues(t *testing.T) {
	r := hostileReview(t)
	var md, text strings.Builder
	if err := r.WriteMarkdown(&md); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteText(&text, false); err != nil {
		t.Fatal(err)
	}
	// Outside of code spans only the review's own words are left.
	for line := range strings.Lines(md.String()) {
		rest := withoutCode(strings.ReplaceAll(line, "<br>", ""))
		if strings.Contains(line, "<details>") || strings.Contains(line, "</details>") {
			continue
		}
		if strings.ContainsAny(rest, "<>[") {
			t.Errorf("markup outside of code: %q", rest)
		}
		if strings.HasPrefix(line, "# ") {
			t.Errorf("a value made a heading: %q", line)
		}
	}
	for name, out := range map[string]string{"markdown": md.String(), "text": text.String()} {
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: a control character came through at %q", name, out[max(0, i-20):i+1])
		}
	}
}

// withoutCode takes the code spans out of a line as CommonMark reads them: from a
// run of backticks to the next one of the same length.
func withoutCode(line string) string {
	var b strings.Builder
	runs := regexp.MustCompile("`+").FindAllStringIndex(line, -1)
	at := 0
	for i := 0; i < len(runs); i++ {
		for j := i + 1; j < len(runs); j++ {
			if runs[j][1]-runs[j][0] == runs[i][1]-runs[i][0] {
				b.WriteString(line[at:runs[i][0]])
				at, i = runs[j][1], j
				break
			}
		}
	}
	return b.String() + line[at:]
}

func TestSideBySideDiffMarksChanges(t *testing.T) {
	rows := compareSides(File{Kind: Changed, Was: []byte("a\nvm.x = 10\nb\n"), Now: []byte("a\nvm.x = 60\nnew\nb\n")})
	if len(rows) != 4 {
		t.Fatalf("%+v", rows)
	}
	if r := rows[1]; r.Was.Before != "vm.x = " || r.Was.Mark != "1" || r.Now.Mark != "6" || r.Was.After != "0" || r.Was.No != 2 {
		t.Errorf("%+v", r)
	}
	if r := rows[2]; r.Was.No != 0 || r.Now.No != 3 || r.Now.Before != "new" {
		t.Errorf("%+v", r)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("A:append:m = \" x\"\nB[flag] = \"1\"\n", "[Service]\nNice=1\n", "CONFIG_A=y\n")
	f.Fuzz(func(t *testing.T, conf, unit, cfg string) {
		was := newSide(t, plan.Plan{}, Files{"conf/yoctune/box.conf": []byte(cfg)})
		now := newSide(t, plan.Plan{}, Files{"conf/yoctune/box.conf": []byte(conf), "x/" + machine + "/a.service": []byte(unit),
			"recipes-kernel/" + machine + "/a.cfg": []byte(cfg), "recipes-yoctune/packagegroup-x.bb": []byte(conf)})
		r := compared(t, was, now)
		for _, write := range []func() error{
			func() error { return r.WriteText(&bytes.Buffer{}, false) }, func() error { return r.WriteMarkdown(&bytes.Buffer{}) },
			func() error { return r.WriteJSON(&bytes.Buffer{}) }, func() error { return r.WriteHTML(&bytes.Buffer{}) },
		} {
			if err := write(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Whatever differs is a change, or a text for people.
func TestNoDifferenceIsCalledNone(t *testing.T) {
	files := "recipes-yoctune/yoctune-box-config/files/" + machine + "/"
	tmpfs := func(options string) Side {
		s := newSide(t, plan.Plan{Settings: []plan.Setting{{ID: "tmpfs./var/x", Domain: plan.DomainMemory, Want: "1048576", Needs: plan.NeedsReboot}}}, nil)
		s.Files = append(s.Files, emitters.File{Path: files + "var-x.mount", Data: []byte("[Mount]\nOptions=" + options + "\n"), Machine: machine,
			Means: []emitters.Meaning{{Kind: emitters.Unit, Name: "var-x.mount", Value: "unit", ID: "tmpfs./var/x"}}})
		return s
	}
	with := func(name, text string, means ...emitters.Meaning) Side {
		s := newSide(t, plan.Plan{}, nil)
		s.Files = append(s.Files, emitters.File{Path: name, Data: []byte(text), Means: means})
		return s
	}
	for _, c := range []struct {
		name     string
		was, now Side
		need     Need
		want     string // "": nothing
	}{
		{"the mode of a tmpfs", tmpfs("size=1048576,mode=0750"), tmpfs("size=1048576,mode=0700"), restart, "mode=0750 → size=1048576,mode=0700"},
		{"the copies of a cluster, beside a setting", newSide(t, plan.Plan{Cluster: &plan.Cluster{Name: "c", Replicas: 3}}, nil),
			newSide(t, plan.Plan{Cluster: &plan.Cluster{Name: "c", Replicas: 5}, Settings: []plan.Setting{sysctlOf("vm.swappiness", "10")}}, nil), restart, "replicas: 3 → 5"},
		{"the algorithm of zram", newSide(t, plan.Plan{}, Files{files + "yoctune-zram.service": []byte("[Service]\nExecStart=/z start 1 lz4\n")}),
			newSide(t, plan.Plan{}, Files{files + "yoctune-zram.service": []byte("[Service]\nExecStart=/z start 1 zstd\n")}), restart, "start 1 lz4 → /z start 1 zstd"},
		{"a script", with(files+"yoctune-zram.sh", "#!/bin/sh\na\n"), with(files+"yoctune-zram.sh", "#!/bin/sh\nb\n"), reboot, "line 1: a → b"},
		{"the interpreter of a script", with(files+"x.sh", "#!/bin/sh\na\n"), with(files+"x.sh", "#!/bin/dash\na\n"), reboot, "#!/bin/dash"},
		{"a comment", with("conf/x.conf", "# a\n"), with("conf/x.conf", "# b\n"), noNeed, ""},
		{"a class", with("classes/x.bbclass", "A = \"1\"\n"), with("classes/x.bbclass", "A = \"2\"\n"), reflash, "file classes/x.bbclass"},
		{"the distribution of kas", with("kas-cam.yml", "distro: poky\n"), with("kas-cam.yml", "distro: nodistro\n"), reflash, "distro: poky → distro: nodistro"},
		{"a feature of the machine", newSide(t, plan.Plan{}, nil), with("conf/yoctune/box.conf", "MACHINE_FEATURES:append = \" wifi\"\n",
			emitters.Meaning{Kind: emitters.Variable, Name: "MACHINE_FEATURES:append", Value: "wifi", ID: "build.machineFeatures.append"}), reflash, "MACHINE_FEATURES:append: wifi"},
		{"threads of the build", newSide(t, plan.Plan{}, nil), with("conf/yoctune/box.conf", "BB_NUMBER_THREADS = \"4\"\n",
			emitters.Meaning{Kind: emitters.Variable, Name: "BB_NUMBER_THREADS", Value: "4", ID: "build.parallel.tasks"}), build, "BB_NUMBER_THREADS: 4"},
		{"the format of packages", newSide(t, plan.Plan{}, nil), with("conf/yoctune/box.conf", "PACKAGE_CLASSES = \"package_ipk\"\n",
			emitters.Meaning{Kind: emitters.Variable, Name: "PACKAGE_CLASSES", Value: "package_ipk", ID: "build.format"}), reflash, "PACKAGE_CLASSES: package_ipk"},
		{"a pipeline that starts at boot", newSide(t, plan.Plan{}, nil), with("recipes-yoctune/yoctune-box-config/yoctune-box-config_1.0.bb", "",
			emitters.Meaning{Kind: emitters.Unit, Name: "yoctuned-pipeline@p.service", Value: "enabled", Machine: machine, ID: "pipelines.p"}), restart, "starts: at boot"},
	} {
		r := compared(t, c.was, c.now)
		var b strings.Builder
		if err := r.WriteText(&b, false); err != nil {
			t.Fatal(err)
		}
		if (c.want == "") != (r.Changes() == 0) || !strings.Contains(b.String(), c.want) || r.Need() != c.need {
			t.Errorf("%s: need %v; no %q in\n%s", c.name, r.Need(), c.want, b.String())
		}
	}
}
