package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/cli"
)

func runKernel(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), append([]string{"kernel"}, args...), &out, &errOut)
	return out.String(), errOut.String(), code
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The case study's fragment: on every kernel BBR is lost, and the result names the cause and
// the option to add.
const seedFragment = `CONFIG_PREEMPT_VOLUNTARY=y
CONFIG_NO_HZ_FULL=y
CONFIG_RCU_NOCB_CPU=y
CONFIG_HIGH_RES_TIMERS=y
CONFIG_IRQ_TIME_ACCOUNTING=y
CONFIG_CPU_FREQ_GOV_SCHEDUTIL=y
CONFIG_TCP_CONG_BBR=y
CONFIG_NET_SCH_FQ=y
`

func TestKernelPredictReportsBBRLostOnEveryKernel(t *testing.T) {
	fragment := writeFile(t, "seed.cfg", seedFragment)
	for _, k := range []string{"4.9", "5.10", "5.15", "6.1", "6.8", "6.12", "6.18"} {
		out, stderr, code := runKernel(t, "predict", "--kernel", k, "--format", "json", fragment)
		if code != cli.ExitNo {
			t.Fatalf("%s: exit %d: %s", k, code, stderr)
		}
		var last map[string]any
		sc := bufio.NewScanner(strings.NewReader(out))
		sc.Buffer(nil, 1<<20)
		n := 0
		for sc.Scan() {
			last = nil
			if err := json.Unmarshal(sc.Bytes(), &last); err != nil {
				t.Fatalf("%s: %v in %s", k, err, sc.Text())
			}
			if last["type"] != "symbol" {
				continue
			}
			n++
			if last["symbol"] == "TCP_CONG_BBR" {
				if last["outcome"] != "lost" || last["got"] != nil || last["line"] != 7.0 || last["file"] != fragment ||
					last["cause"] != "needs TCP_CONG_ADVANCED, which is off in the base configuration" {
					t.Errorf("%s: %s", k, sc.Text())
				}
			} else if last["outcome"] != "kept" || last["got"] != "y" {
				t.Errorf("%s: %s", k, sc.Text())
			}
		}
		if n != 8 || last["type"] != "summary" || last["lost"] != 1.0 || last["fix_kept"] != 8.0 {
			t.Errorf("%s: %d symbols, summary %v", k, n, last)
		}
	}
}

func TestKernelPredictFixKeepsEveryRequest(t *testing.T) {
	fragment := writeFile(t, "seed.cfg", strings.TrimSuffix(seedFragment, "\n"))
	out, stderr, code := runKernel(t, "predict", "--kernel", "5.15", "--fix", fragment)
	if code != cli.ExitDone {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	data, err := os.ReadFile(fragment)
	if err != nil {
		t.Fatal(err)
	}
	if want := seedFragment + "CONFIG_TCP_CONG_ADVANCED=y\n"; string(data) != want {
		t.Errorf("the fragment is now\n%s", data)
	}
}

func TestKernelPredictRefusesUnreadableInput(t *testing.T) {
	fragment := writeFile(t, "a.cfg", "CONFIG_PSI=y\n")
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"neither one of 4.9, 5.10", cli.ExitFailed, []string{"predict", "--kernel", "3.10", fragment}},
		{"not a kernel facts file", cli.ExitFailed, []string{"predict", "--kernel", fragment, fragment}},
		{"no such file", cli.ExitFailed, []string{"predict", "--kernel", "5.15", fragment + "x"}},
		{"no such file", cli.ExitFailed, []string{"predict", "--kernel", "5.15", "--base", "nowhere/.config", fragment}},
		{"--kernel K is required", cli.ExitUsage, []string{"predict", fragment}},
		{"missing argument: FRAGMENT", cli.ExitUsage, []string{"predict", "--kernel", "5.15"}},
		{"this command offers", cli.ExitUsage, []string{"predict", "--kernel", "5.15", "--format", "xml", fragment}},
		{"kernel source", cli.ExitFailed, []string{"index", "nowhere", "-o", fragment + ".idx"}},
	} {
		_, stderr, code := runKernel(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit %d, %s", c.args, code, stderr)
		}
	}
}

func TestKernelPredictExits3WhenALineIsIgnored(t *testing.T) {
	fragment := writeFile(t, "a.cfg", "CONFIG_HIGH_RES_TIMERS=y\n CONFIG_PSI=y\n")
	out, _, code := runKernel(t, "predict", "--kernel", "5.15", fragment)
	if code != cli.ExitNo || !strings.Contains(out, fragment+":2:1: ignored: CONFIG_ must start the line") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestKernelPredictReadsAnIndex(t *testing.T) {
	src := t.TempDir()
	for name, text := range map[string]string{
		"Makefile":                     "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\n",
		"Kconfig":                      "config MODULES\n\tdef_bool y\n\tmodules\nconfig VENDOR_CAMERA\n\ttristate \"camera\"\n\tdepends on VENDOR\nconfig VENDOR\n\tbool \"vendor\"\n",
		"arch/arm64/configs/defconfig": "CONFIG_VENDOR=y\n",
	} {
		path := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	idx := filepath.Join(t.TempDir(), "vendor.kidx")
	out, stderr, code := runKernel(t, "index", src, "-o", idx)
	if code != cli.ExitDone || !strings.Contains(out, "kernel 6.12.3: 1 Kconfig files, 3 symbols") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	fragment := writeFile(t, "a.cfg", "CONFIG_VENDOR_CAMERA=m\n")
	if out, _, code := runKernel(t, "predict", "--kernel", idx, fragment); code != cli.ExitDone {
		t.Errorf("exit %d: %s", code, out)
	}
	empty := writeFile(t, "empty.config", "# CONFIG_VENDOR is not set\n")
	out, _, code = runKernel(t, "predict", "--kernel", idx, "--base", empty, fragment)
	if code != cli.ExitNo || !strings.Contains(out, "needs VENDOR, which is off in the base configuration") {
		t.Errorf("exit %d: %s", code, out)
	}
	if err := os.WriteFile(filepath.Join(src, "Kconfig"), []byte("config A\n\tbool\n\tdepends on (B\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, code = runKernel(t, "index", src, "-o", idx)
	if code != cli.ExitFailed || !strings.Contains(stderr, "Kconfig:3:13: ( without )") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
