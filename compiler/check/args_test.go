package check_test

import (
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
)

func TestKernelArgumentsAreCheckedAgainstTheBSP(t *testing.T) {
	const (
		r32 = `board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", `
		tx2 = `board: "tx2", release: "kirkstone-l4t-r32.7.x", `
		r35 = `board: "agx-orin-64gb", release: "kirkstone", `
		r36 = `board: "orin-nano-8gb", release: "scarthgap", `
	)
	for _, c := range []struct{ body, wantText string }{
		{r36 + `kernel: args: fbcon: "map:1"`, "kernel-arg-stock: fbcon=map:1 follows fbcon=map:0, which machine"},
		{r36 + `kernel: args: fbcon: "map:0"`, "kernel-arg-stock: machine jetson-orin-nano-devkit sets fbcon=map:0 itself"},
		{r36 + `kernel: args: "firmware-class.path": "/x"`, "kernel-arg-stock: firmware-class.path=/x follows firmware-class.path=/etc/firmware"},
		{r36 + `kernel: args: root: "/dev/sda1"`, "kernel-arg-root: root does not decide what is mounted: it is the partition APP of the booted slot"},
		{tx2 + `kernel: args: root: "/dev/sda1"`, "it is KERNEL_ROOTSPEC of the machine"},
		{r36 + `kernel: args: rootflags: "noatime"`, "kernel-arg-root: nothing reads rootflags"},
		{r36 + `kernel: args: rootdelay: 5`, "kernel-arg-root: nothing reads rootdelay"},
		{r36 + `kernel: args: rootfstype: "squashfs"`, ""},
		{r35 + `kernel: args: rootfstype: "squashfs"`, "reads only root, ro, rootwait"},
		{r32 + `kernel: args: rootfstype: "squashfs"`, "reads only root, ro, rootwait"},
		{tx2 + `kernel: args: rootfstype: "squashfs"`, ""},
		{r36 + `kernel: args: ro: true`, ""},
	} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget("{" + c.body + "}"))})
		var messages []string
		for _, d := range p.Report.All() {
			messages = append(messages, d.ID+": "+d.Message)
		}
		text := strings.Join(messages, "\n")
		if c.wantText == "" && strings.Contains(text, "kernel-arg") || !strings.Contains(text, c.wantText) {
			t.Errorf("%s: got %q, want %q", c.body, text, c.wantText)
		}
	}
}

func TestExplainShowsHowAnArgumentReachesTheKernel(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{board: "orin-nano-8gb", release: "scarthgap", kernel: args: quiet: true}`, "APPEND of extlinux.conf"},
		{`{board: "agx-xavier", release: "kirkstone-l4t-r32.7.x", kernel: args: quiet: true}`, "meta-tegra classes/image_types_tegra.bbclass"},
	} {
		p := compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget(c.body))})
		a, err := p.Explain("targets.cam.kernel.args.quiet")
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(a.Notes, "\n"); !strings.Contains(notes, "reaches the kernel by") || !strings.Contains(notes, c.want) {
			t.Errorf("%s: %q", c.body, notes)
		}
	}
}
