package check_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
)

// The kinds of sysctl that go wrong in the field, on the kernel of the target.
func TestEachKindOfSysctlIsChecked(t *testing.T) {
	const (
		r32 = `board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", `
		r35 = `board: "agx-orin-64gb", release: "kirkstone", `
		r36 = `board: "orin-nano-8gb", release: "scarthgap", `
	)
	for _, c := range []struct{ kind, body, wantText string }{
		{"write-only", r36 + `sysctl: "vm.drop_caches": 3`, "error sysctl-oneshot"},
		{"one-shot", r36 + `sysctl: "vm.stat_refresh": 1`, "error sysctl-oneshot"},
		{"sticky", r36 + `sysctl: "kernel.unprivileged_bpf_disabled": 1`, "warning sysctl-sticky"},
		{"read-only", r36 + `sysctl: "kernel.ngroups_max": 1`, "error sysctl-readonly"},
		{"misspelt, of a folder with other parameters", r36 + `sysctl: "fs.inootify.max_queued_events": 8192`, "error sysctl-unknown"},
		{"misspelt, and perhaps another", r36 + `sysctl: "net.ipv4.udp_xmem_min": 8192`, "warning sysctl-unknown"},
		{"of a folder with other parameters", r36 + `sysctl: "fs.xfs.error_level": 3`, ""},
		{"of a module", r36 + `sysctl: "net.netfilter.nf_conntrack_max": 262144`, "warning sysctl-module"},
		{"of a module that is loaded", r36 + `modules: nf_conntrack: "load", sysctl: "net.netfilter.nf_conntrack_max": 262144`, ""},
		{"of an option", r35 + `sysctl: "kernel.sched_util_clamp_min": 128`, "error sysctl-config"},
		{"moved", r36 + `sysctl: "kernel.sched_latency_ns": 10000000`, "error sched-knobs-moved"},
		{"not moved yet", r35 + `sysctl: "kernel.sched_latency_ns": 10000000`, ""},
		{"of a kernel to come", r32 + `sysctl: "vm.watermark_boost_factor": 0`, "error sysctl-absent"},
		{"vector of too few", r36 + `sysctl: "net.ipv4.tcp_rmem": "4096 131072"`, "error sysctl-value"},
		{"vector", r36 + `sysctl: "net.ipv4.tcp_rmem": "4096 131072 6291456"`, ""},
		{"vector of words", r36 + `sysctl: "kernel.printk": "4 4 one 7"`, "error sysctl-value"},
		{"range of the kernel", r32 + `sysctl: "vm.swappiness": 150`, "error sysctl-value"},
		{"range of a later kernel", r36 + `memory: zram: "1GiB", sysctl: "vm.swappiness": 150`, ""},
		{"text for a number", r36 + `sysctl: "vm.swappiness": "low"`, "error sysctl-value"},
		{"a comment behind it", r36 + `sysctl: "net.core.default_qdisc": "fq # pace"`, "error sysctl-text"},
		{"two units of one limit", r36 + `sysctl: {"vm.dirty_ratio": 5, "vm.dirty_bytes": 1048576}`, "error dirty-pair"},
		{"set later by another file", r36 + `sysctl: "net.ipv4.tcp_syncookies": 2`, "warning sysctl-later"},
		{"set later to the same", r36 + `sysctl: "net.ipv4.tcp_syncookies": 1`, ""},
		{"undone by another", r36 + `sysctl: {"net.ipv4.ip_forward": 1, "net.ipv4.conf.default.forwarding": 0, "net.ipv4.conf.all.rp_filter": 2}`, "warning sysctl-ipforward"},
		{"undone by another, inverted", r36 + `sysctl: {"net.ipv4.ip_forward": true, "net.ipv4.conf.all.accept_redirects": true}`, "warning sysctl-ipforward"},
		{"what another does anyway", r36 + `sysctl: {"net.ipv4.ip_forward": 1, "net.ipv4.conf.default.forwarding": 1}`, "info sysctl-ipforward"},
		{"documented to be reset", r36 + `sysctl: {"net.ipv4.ip_forward": 1, "net.ipv4.conf.all.rp_filter": 2}`, "info sysctl-ipforward"},
		{"of an interface, misspelt", r36 + `sysctl: "net.ipv4.conf.can0.rp_filtr": 2`, "error sysctl-unknown"},
		{"of a neighbour table", r36 + `sysctl: "net.ipv4.neigh.default.gc_thresh1": 1024`, ""},
		{"of a folder of the kernel, misspelt", r36 + `sysctl: "fs.inotify.max_user_watch": 524288`, "warning sysctl-unknown"},
		{"of a file system", r36 + `sysctl: "fs.nfs.nlm_tcpport": 32768`, ""},
		{"of an interface, which systemd writes when it appears", r36 + `sysctl: "net.ipv4.conf.enP8p1s0.rp_filter": 2`, ""},
		{"of an interface, which nobody writes", r36 + `sysctl: "net.mpls.conf.eth0.input": 1`, "warning sysctl-device"},
		{"beyond the facts", r36 + `sysctl: "vendor.knob": 1`, "warning sysctl-unknown"},
	} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget("{" + c.body + "}"))})
		var messages []string
		for _, d := range p.Report.All() {
			messages = append(messages, d.Severity.String()+" "+d.ID)
		}
		text := strings.Join(messages, ", ")
		if c.wantText == "" && text != "" || !strings.Contains(text, c.wantText) {
			t.Errorf("%s: got %q, want %q", c.kind, text, c.wantText)
		}
	}
}

func TestExplainShowsTheKindOfSysctl(t *testing.T) {
	p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget(`{sysctl: {"net.ipv4.tcp_rmem": "4096 131072 6291456", "kernel.shmmax": 1000000}}`))})
	for key, want := range map[string]string{
		"net.ipv4.tcp_rmem": "one for each network namespace",
		"kernel.shmmax":     "one for each IPC namespace",
	} {
		a, err := p.Explain(`targets.cam.sysctl."` + key + `"`)
		if err != nil || !strings.Contains(strings.Join(a.Notes, "\n"), want) {
			t.Errorf("%s: %q, %v", key, a.Notes, err)
		}
	}
}
