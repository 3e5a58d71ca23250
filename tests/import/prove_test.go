// Package imports tests the referee of import: it must find a loss.
package imports

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A stand-in for yoctune claims that every line was understood, and writes a layer that lacks
// one setting of each kind and has the others.
const liar = `#!/bin/sh
case $1 in
import)
	[ -d "$2" ] || exit 1
	layer=$2
	for arg; do [ "$prev" != -o ] || echo "layer: {}" >"$arg"; prev=$arg; done
	line() { echo "{\"type\":\"line\",\"file\":\"$layer/$1\",\"line\":$2,\"text\":\"x\",\"verdict\":\"understood\",\"path\":\"$3\"}"; }
	line conf/layer.conf 1 build.parallel.tasks
	line conf/layer.conf 2 build.parallel.make
	line k.cfg 1 kernel.config.A
	line k.cfg 2 kernel.config.B
	line s/90-a.conf 1 sysctl.a
	line s/90-a.conf 2 sysctl.b
	line u.service 2 services.u
	line u.service 3 services.u
	line t.sh 3 memory.thp
	line t.sh 4 storage.sda.readahead
	line t.sh 5 network.eth0.mtu
	line t/tuned.conf 2 sysctl.c
	line 9-a.rules 1 bus.usb.devices
	line 9-a.rules 2 network.eth1.mtu
	line 1-a.link 4 network.eth2.ring.rx
	line modprobe.d/a.conf 1 modules.nouveau
	echo '{"type":"summary","machine":"m"}' ;;
build)
	mkdir -p "$4/conf/yoctune" "$4/files"
	echo 'BB_NUMBER_THREADS = "8"' >"$4/conf/yoctune/x.conf"
	echo 'CONFIG_A=y' >"$4/files/x.cfg"
	echo 'vm.a = 1' >"$4/files/95-yoctune.conf"
	printf '[Service]\nNice=5\n' >"$4/files/u.service"
	setting() { echo "{\"select\":{\"$1\":\"$2\",\"name\":\"$3\",\"attr\":\"$4\"},\"want\":\"$5\"}"; }
	{
		echo '{"settings":['
		setting class block sda queue/read_ahead_kb 128 && echo ,
		setting class usb 046d:0825 power/control on && echo ,
		setting path /proc/sys/vm/c "" "" 7
		echo ']}'
	} >"$4/files/plan.json" ;;
esac
`

func TestRefereeFindsLosses(t *testing.T) {
	python, err := filepath.Abs("../../build/bb-venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if venv := os.Getenv("YOCTUNE_BITBAKE_VENV"); venv != "" {
		python = filepath.Join(venv, "bin", "python")
	}
	if _, err := os.Stat(python); err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_BITBAKE") == "1" {
			t.Fatal("bitbake's parser is missing: scripts/setup.sh python")
		}
		t.Skip("bitbake's parser is missing: scripts/setup.sh python")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"yoctune":               liar,
		"layer/conf/layer.conf": "BB_NUMBER_THREADS = \"8\"\nPARALLEL_MAKE = \"-j 3\"\n",
		"layer/k.cfg":           "CONFIG_A=y\nCONFIG_B=m\n",
		"layer/s/90-a.conf":     "vm.a = 1\nvm.b = 2\n",
		"layer/u.service":       "[Service]\nNice=5\nUser=bob\n",
		"layer/t.sh": "#!/bin/sh\nD=sda\necho always > /sys/kernel/mm/transparent_hugepage/enabled\n" +
			"for d in $D; do echo 128 > /sys/block/$d/queue/read_ahead_kb; done\nip link set eth0 mtu 9000\n",
		"layer/t/tuned.conf":      "[sysctl]\nvm.c = 7\n",
		"layer/9-a.rules":         "SUBSYSTEM==\"usb\", ATTR{idVendor}==\"046D\", ATTR{idProduct}==\"0825\", ATTR{power/control}=\"on\"\nSUBSYSTEM==\"net\", KERNEL==\"eth1\", ATTR{mtu}=\"1400\"\n",
		"layer/1-a.link":          "[Match]\nOriginalName=eth2\n[Link]\nRxBufferSize=512\n",
		"layer/modprobe.d/a.conf": "blacklist nouveau\n",
		"layer/unnamed":           "text\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	record := filepath.Join(dir, "record.json")
	out, err := exec.Command(python, "prove.py", "--yoctune", filepath.Join(dir, "yoctune"), "--runtime", dir, "-o", record, filepath.Join(dir, "layer")).CombinedOutput()
	if err == nil {
		t.Fatalf("the referee found nothing:\n%s", out)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"PARALLEL_MAKE is", "option CONFIG_B is None, not m", "sysctl vm.b is None, not 2", "Service.User of u.service",
		"transparent_hugepage/enabled is None, not 'always'", "net/eth0/mtu is None", "net/eth1/mtu is None", "net/eth2/ring/rx is None", "module/nouveau is no such line", "a file that the report does not name"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the record lacks %q:\n%s", want, text)
		}
	}
	for _, not := range []string{"BB_NUMBER_THREADS is", "CONFIG_A", "vm.a is", "Service.Nice", "read_ahead_kb is", "sys/vm/c is", "usb/"} {
		if strings.Contains(string(text), not) {
			t.Errorf("the record has %q, which is not a loss:\n%s", not, text)
		}
	}
}
