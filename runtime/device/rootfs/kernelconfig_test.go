package rootfs_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

const someConfig = "#\n# Automatically generated file; DO NOT EDIT.\n#\nCONFIG_HZ=250\n# CONFIG_PSI is not set\nCONFIG_TCP_CONG_BBR=m\nCONFIG_DEFAULT_TCP_CONG=\"cubic\"\n"

func zip(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// machine returns a device with a kernel 6.1 and these files.
func machine(t testing.TB, files map[string]string) *rootfs.Root {
	t.Helper()
	dir := t.TempDir()
	files["/proc/sys/kernel/osrelease"] = "6.1.2-x\n"
	for name, text := range files {
		host := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(host, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

func TestRunningKernelConfig(t *testing.T) {
	for place, text := range map[string]string{
		"/proc/config.gz":                    zip(t, someConfig),
		"/boot/config-6.1.2-x":               someConfig,
		"/lib/modules/6.1.2-x/config":        strings.ReplaceAll(someConfig, "\n", "\r\n"),
		"/usr/lib/modules/6.1.2-x/config":    someConfig,
		"/lib/modules/6.1.2-x/build/.config": someConfig,
	} {
		o, err := rootfs.ReadKernelOptions(machine(t, map[string]string{place: text}))
		if err != nil {
			t.Errorf("%s: %v", place, err)
			continue
		}
		if o.Path != place {
			t.Errorf("read %s, want %s", o.Path, place)
		}
		for symbol, want := range map[string]string{
			"HZ": "250", "PSI": "n", "TCP_CONG_BBR": "m", "DEFAULT_TCP_CONG": `"cubic"`, "ABSENT": "n", "Z": "n", "TCP_CONG": "n",
		} {
			if got := o.Get(symbol); got != want {
				t.Errorf("%s: CONFIG_%s is %q, want %q", place, symbol, got, want)
			}
		}
	}
}

func TestConfigOfAnotherKernelIsIgnored(t *testing.T) {
	_, err := rootfs.ReadKernelOptions(machine(t, map[string]string{"/boot/config-5.10.0": someConfig}))
	if !errors.Is(err, rootfs.ErrNoConfig) || !strings.Contains(err.Error(), "/boot/config-6.1.2-x") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedKernelConfigIsAnError(t *testing.T) {
	whole := zip(t, someConfig)
	for name, text := range map[string]string{
		"cut short": whole[:len(whole)/2],
		"too large": zip(t, strings.Repeat("CONFIG_A=y\n", 1<<19)),
	} {
		o, err := rootfs.ReadKernelOptions(machine(t, map[string]string{"/proc/config.gz": text, "/boot/config-6.1.2-x": someConfig}))
		if err == nil || errors.Is(err, rootfs.ErrNoConfig) || !strings.Contains(err.Error(), "/proc/config.gz") {
			t.Errorf("%s: %v, %v", name, o, err)
		}
	}
}

// The configuration of the kernel that runs this test, if it is readable, is the same as read by
// the system's tools.
func TestAllOptionsOfThisKernelAreRead(t *testing.T) {
	dev, err := rootfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	o, err := rootfs.ReadKernelOptions(dev)
	if errors.Is(err, rootfs.ErrNoConfig) {
		t.Skip("nothing to compare on this machine: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = f
	if strings.HasSuffix(o.Path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !strings.HasPrefix(name, "CONFIG_") {
			continue
		}
		n++
		if got := o.Get(strings.TrimPrefix(name, "CONFIG_")); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	t.Logf("%d options of %s", n, o.Path)
}
