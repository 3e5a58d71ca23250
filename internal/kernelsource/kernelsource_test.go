package kernelsource_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/internal/kernelsource"
)

// tree is a kernel with one example of each way to build a source and to register an argument.
func tree(t *testing.T) *kernelsource.Tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Makefile":        "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\n",
		"kernel/Makefile": "obj-y += main.o\nobj-y += sched/\nifdef CONFIG_TREE\nobj-y += tree.o\nendif\nifeq ($(SRCARCH),x86)\nobj-y += old.o\nelse\nobj-y += new.o\nendif\n",
		"kernel/main.c": "__setup(\"quiet\", q);\n/* early_param(\"no\", x); */\n#ifdef CONFIG_FOO\nearly_param(\"foo\", f);\n#endif\n#if 0\n__setup(\"dead\", d);\n#endif\n" +
			"core_param(initcall_debug, initcall_debug, bool, 0644);\nstatic int __init set_mode(char *str)\n{\n\tif (!strcmp(str, \"off\"))\n\t\tx = 0;\n\telse if (!strcmp(str, \"auto\"))\n\t\tx = 1;\n\treturn 0;\n}\nearly_param(\"mode\", set_mode);\n" +
			"static int __init set_size(char *p)\n{\n\tsize = memparse(p, &p);\n\treturn 0;\n}\n__setup(\"size=\",\n\tset_size);\n",
		"kernel/new.c": "__setup(\"newarg=\", n);\n#define COMM \"watch\"\nt = kthread_run(f, NULL,\n\t\"%s-\" COMM \"/%03u\", name);\n/* kthread_run(f, NULL, \"never\"); */\n" +
			"#ifdef CONFIG_RT\nstatic struct smp_hotplug_thread x = {\n\t.thread_comm\t= \"ktimers/%u\",\n};\n#endif\nkthread_create_on_cpu(f, d, cpu, \"bound%c/%d\");\nkthread_create(f, d, \"%s\", n);\n",
		"net/ethtool/common.c":                            "[NETIF_F_SG_BIT] =\t\"tx-scatter-gather\",\n/* [NETIF_F_NO_BIT] = \"no\" */\n[NETIF_F_GRO_BIT] = \"rx-gro\",\n",
		"kernel/old.c":                                    "__setup(\"oldarg=\", n);\n",
		"kernel/tree.c":                                   "#undef MODULE_PARAM_PREFIX\n#define MODULE_PARAM_PREFIX \"rcutree.\"\nmodule_param(prio, int, 0444);\n#include \"plugin.h\"\n",
		"kernel/plugin.h":                                 "static int nocbs(char *str)\n{\n\treturn cpulist_parse(str, mask);\n}\n__setup(\"rcu_nocbs\", nocbs);\n",
		"kernel/sched/Makefile":                           "obj-y += util.o\n",
		"kernel/sched/util.c":                             "#ifdef CONFIG_ISOLATION\n# include \"isolation.c\"\n#endif\n",
		"kernel/sched/isolation.c":                        "static int isolate(char *str)\n{\n\tif (strncmp(str, \"domain,\", 7)) ;\n\treturn cpulist_parse(str, mask);\n}\n__setup(\"isolcpus=\", isolate);\n",
		"drivers/Makefile":                                "obj-$(CONFIG_NET) += net/\nobj-y += block/ flash/\n",
		"drivers/block/Makefile":                          "obj-y += ring.o plain.o\n",
		"drivers/block/ring.c":                            "#define RING \"ring\"\n#define RING_DEPTH 0x20 /* slots */\nset->queue_depth = RING_DEPTH;\nblk_mq_alloc_disk(set);\nsprintf(disk->disk_name, RING \"%d\", i);\n",
		"drivers/block/plain.c":                           "static const struct block_device_operations o = {\n\t.submit_bio = s,\n};\nsnprintf(disk->disk_name, DISK_NAME_LEN, \"plain%u\", i);\nprintk(\"%s\", disk->disk_name);\n",
		"drivers/flash/Makefile":                          "obj-y += names.o queue.o\n",
		"drivers/flash/names.c":                           "flash_format_disk_name(\"fl\", index, disk->disk_name, DISK_NAME_LEN);\n",
		"drivers/flash/queue.c":                           "static unsigned int depth = 512;\ndevice_param(depth, 0644);\nadmin.queue_depth = FL_AQ_DEPTH;\ndev->q = min_t(u32, LIMIT(cap) + 1,\n\t\tdepth);\ntag_set.queue_depth = min_t(unsigned, dev->q,\n\tBLK_MQ_MAX_DEPTH) - 1;\nblk_mq_alloc_tag_set(&tag_set);\n",
		"include/linux/blkdev.h":                          "#define BLKDEV_MIN_RQ\t4\n#define BLKDEV_DEFAULT_RQ\t128\nenum {\n\tBLK_MQ_MAX_DEPTH\t= 10240,\n};\n",
		"block/blk-mq-sched.h":                            "#define MAX_SCHED_RQ (16 * BLKDEV_DEFAULT_RQ)\n",
		"drivers/net/Makefile":                            "obj-$(CONFIG_R8) += r8.o\nr8-objs := core.o\nr8-$(CONFIG_R8_PTP) += ptp.o\nEXTRA = lib-a.o\nobj-$(CONFIG_MULTI) += $(EXTRA)\n",
		"drivers/net/core.c":                              "module_param_named(msg, debug, uint, 0);\nMODULE_ALIAS(\"r8-old\");\nMODULE_ALIAS(\"pci:v1\");\n",
		"drivers/net/ptp.c":                               "#define ptp_param(name) module_param(ptp_##name, bool, 0)\nptp_param(on);\n",
		"drivers/net/lib-a.c":                             "#ifdef MODULE\n__setup(\"never=\", n);\n#endif\nmodule_param_array(io, int, NULL, 0);\n",
		"arch/x86/kernel/setup.c":                         "early_param(\"nolapic\", x);\n",
		"arch/arm64/kernel/head.c":                        "",
		"arch/arm64/kernel/idreg-override.c":              "static const struct {\n} aliases[] __initconst = {\n\t{ \"arm64.nobti\",\t\t\"id_aa64pfr1.bt=0\" },\n};\n",
		"Documentation/admin-guide/kernel-parameters.txt": "\tapic=\t\t[APIC,X86] Change the output\n\t\t\tFormat: { quiet }\n\tnosmt\t\t[KNL,S390] Disable\n\tprose without tags\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := kernelsource.ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestDisksOfATree(t *testing.T) {
	tree := tree(t)
	if got, want := tree.QueueLimits(), (kernelsource.QueueLimits{Min: 4, Scheduler: 2048}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	want := []kernelsource.Disk{
		{Names: "fl*", Depth: 511, Param: "depth", Less: 1, Queued: true, Source: "drivers/flash/names.c"},
		{Names: "plain#", Direct: true, Source: "drivers/block/plain.c"},
		{Names: "ring#", Depth: 32, Queued: true, Source: "drivers/block/ring.c"},
	}
	if got := tree.Disks(tree.Objects()); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestArgumentsOfATree(t *testing.T) {
	tree := tree(t)
	if tree.Version() != "6.1.9" {
		t.Errorf("version %s", tree.Version())
	}
	var got []string
	for _, p := range tree.Params(tree.Objects()) {
		built := ""
		if !p.Built {
			built = " not built " + p.Arch
		}
		got = append(got, strings.TrimSpace(p.Name+" "+p.Macro+" "+p.Value+" ["+strings.Join(p.Needs, "&")+"]"+built))
	}
	want := []string{
		"arm64.nobti override  []",
		"foo early_param  [FOO]",
		"initcall_debug core_param bool []",
		"isolcpus __setup= cores, [ISOLATION]",
		"lib_a.io module_param array [MULTI&NET]",
		"mode early_param words:auto|off []",
		"newarg __setup=  []",
		"nolapic early_param  [] not built x86",
		"oldarg __setup=  [] not built",
		"quiet __setup  []",
		"r8.msg module_param uint [NET&R8]",
		"r8.ptp_on module_param bool [NET&R8&R8_PTP]",
		"rcu_nocbs __setup cores [TREE]",
		"rcutree.prio module_param int [TREE]",
		"size __setup= size []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestThreadsAndFeaturesOfATree(t *testing.T) {
	tree := tree(t)
	var got []string
	for _, th := range tree.Threads(tree.Objects()) {
		text := th.Name + " " + strings.Join(th.Needs, ",")
		if th.Bound {
			text += " bound"
		}
		got = append(got, text)
	}
	if want := []string{"*-watch/# ", "bound?/#  bound", "ktimers/# RT bound"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := tree.NetFeatures(), []string{"rx-gro", "tx-scatter-gather"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestModulesOfATree(t *testing.T) {
	tree := tree(t)
	objects := tree.Objects()
	gates := map[string]string{}
	for _, o := range objects {
		if o.Loadable {
			gates[o.Module] = o.Gate
		}
	}
	if len(gates) != 2 || gates["r8"] != "R8" || gates["lib_a"] != "MULTI" {
		t.Errorf("got %v", gates)
	}
	if a := tree.Aliases(objects); len(a) != 1 || !slices.Equal(a["r8-old"], []string{"r8"}) {
		t.Errorf("aliases %v", a)
	}
}

func TestDocumentedArguments(t *testing.T) {
	want := []kernelsource.Documented{{Name: "apic", Arch: "x86"}, {Name: "nosmt"}}
	if got := tree(t).Documented(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// The name of a list may have an option in several forms, which decide whether its objects are modules.
func TestListsOfObjects(t *testing.T) {
	for list, want := range map[string][]string{ // objects that can be modules, as MODULE:OPTION:NEEDS
		"obj-$(CONFIG_A) += x.o":                                      {"x:A:A"},
		"obj-${CONFIG_A} := x.o y.o":                                  {"x:A:A", "y:A:A"},
		"obj-$(CONFIG_A)+=x.o":                                        {"x:A:A"},
		"obj-$(subst m,y,$(CONFIG_A)) += x.o":                         nil,
		"obj-$(CONFIG_A:m=y) += x.o":                                  nil,
		"obj-$(findstring y, $(CONFIG_A) $(CONFIG_B)) += x.o":         nil,
		"obj-$(subst y,$(CONFIG_A),$(CONFIG_B)) += x.o":               {"x:A:A B", "x:B:A B"},
		"obj-$(CONFIG_A)$(CONFIG_B) += x.o":                           {"x:A:A", "x:B:B"},
		"obj-y += x.o":                                                nil,
		"obj-$(CONFIG_A) += all.o\nall-${CONFIG_C} += x.o":            {"all:A:A C"},
		"obj-$(CONFIG_A) += all.o\nall-$(CONFIG_B)$(CONFIG_C) += x.o": {"all:A:A B", "all:A:A C"},
		"obj-$(CONFIG_A) += all.o\nall-objs-${CONFIG_C} += x.o":       {"all:A:A C"},
		"all: x.o\n\ttouch obj-$(CONFIG_A)\nobj-$(CONFIG_A) += x.o":   {"x:A:A"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"kernel/Makefile": list + "\n", "kernel/x.c": "", "kernel/y.c": ""} {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tree, err := kernelsource.ReadFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range tree.Objects() {
			if o.Loadable {
				got = append(got, o.Module+":"+o.Gate+":"+strings.Join(o.Needs, " "))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngives %q, want %q", list, got, want)
		}
	}
}
