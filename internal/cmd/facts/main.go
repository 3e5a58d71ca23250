// Command facts formats, derives and checks the data files of schema/facts.
//
//	facts update                                        # after editing a board or a sysctl
//	facts machines  -meta-tegra REPO                    # of every branch in release.go
//	facts units     -meta-tegra REPO
//	facts renamed   -oe-core REPO -bitbake REPO
//	facts kernel-recipes -oe-core REPO
//	facts variables -oe-core REPO -bitbake REPO -meta-tegra REPO -meta-openembedded REPO -meta-tegra-community REPO
//	facts packages  with these repositories and -meta-virtualization REPO
//	facts system    with these repositories, -systemd VERSION=FOLDER... and -base-passwd FOLDER
//	facts directives -systemd VERSION=FOLDER... -kmod REPO -kmod-tag TAG... -glibc REPO -glibc-tag TAG...
//	facts tuned -tuned REPO
//	facts kernels   [-index NAME=FILE]...               # from `yoctune kernel index`
//	facts names     -sources DIR -meta-tegra REPO       # kernel arguments and modules
//	facts threads   -sources DIR                        # kernel threads, features of network interfaces, and disks
//	facts idle      -sources DIR                        # names of idle states
//	facts interfaces -sources DIR -meta-tegra REPO      # names of network interfaces
//
// update lays the files out, sorts them, and derives what follows from them: which
// machines carry a board, which stock table a release installs, and how a device is
// recognised. machines, units, renamed and variables read branches of a git repository with
// "git show"; a bare one serves. -root is the top of this repository.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "facts:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("missing command: update, machines, units, renamed, kernel-recipes, variables, packages, system, directives, tuned, containers, kernels, names, threads, interfaces or idle")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	var (
		root      = flags.String("root", ".", "top `folder` of the yoctune repository")
		metaTegra = flags.String("meta-tegra", "", "git `repository` of OE4T/meta-tegra")
		oeCore    = flags.String("oe-core", "", "git `repository` of openembedded-core")
		bitbake   = flags.String("bitbake", "", "git `repository` of bitbake")
		metaOE    = flags.String("meta-openembedded", "", "git `repository` of meta-openembedded")
		community = flags.String("meta-tegra-community", "", "git `repository` of OE4T/meta-tegra-community")
		virtual   = flags.String("meta-virtualization", "", "git `repository` of meta-virtualization")
		passwd    = flags.String("base-passwd", "", "`folder` with passwd.master and group.master of base-passwd")
		kmod      = flags.String("kmod", "", "git `repository` of kmod")
		glibc     = flags.String("glibc", "", "git `repository` of glibc")
		tuned     = flags.String("tuned", "", "git `repository` of tuned")
		docker    = flags.String("docker", "", "git `repository` of Docker's command line")
		podman    = flags.String("podman", "", "git `repository` of Podman")
		sources   = flags.String("sources", "", "`folder` of the repositories that linux.Sources names, each as OWNER+NAME")
		indexes   []string
		trees     []string
		tags      []string
		glibcTags []string
	)
	flags.Func("index", "replace kernel `NAME=FILE` by an index that yoctune kernel index wrote", func(s string) error {
		indexes = append(indexes, s)
		return nil
	})
	flags.Func("systemd", "unpacked sources of systemd, as `VERSION=FOLDER`; the oldest first", func(s string) error {
		trees = append(trees, s)
		return nil
	})
	flags.Func("kmod-tag", "`tag` of kmod; the oldest first", func(s string) error {
		tags = append(tags, s)
		return nil
	})
	flags.Func("glibc-tag", "`tag` of glibc; the oldest first", func(s string) error {
		glibcTags = append(glibcTags, s)
		return nil
	})
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument %q", args[0], flags.Arg(0))
	}
	facts := filepath.Join(*root, "schema", "facts")
	data := filepath.Join(facts, "release", "data")
	layers := map[string]repository{
		"meta-virtualization": repository(*virtual),
		"bitbake":             repository(*bitbake), "oe-core": repository(*oeCore), "meta-tegra": repository(*metaTegra),
		"meta-openembedded": repository(*metaOE), "meta-tegra-community": repository(*community),
	}
	switch args[0] {
	case "update":
		if err := updateBoards(filepath.Join(facts, "board")); err != nil {
			return err
		}
		return updateSysctls(filepath.Join(facts, "sysctl", "data", "sysctls.json"))
	case "machines":
		return writeMachines(repository(*metaTegra), filepath.Join(data, "machines.json"))
	case "units":
		return writeUnits(repository(*metaTegra), filepath.Join(data, "units.json"))
	case "variables":
		return writeVariables(layers, filepath.Join(facts, "variable", "data", "variables.txt"))
	case "packages":
		return writePackages(layers, filepath.Join(facts, "recipe"))
	case "renamed":
		return writeRenamed(repository(*oeCore), repository(*bitbake), filepath.Join(data, "renamed.json"))
	case "kernel-recipes":
		return writeKernelRecipes(repository(*oeCore), filepath.Join(data, "kernels.json"))
	case "system":
		return writeSystem(layers, trees, *passwd, filepath.Join(facts, "system"))
	case "directives":
		return writeDirectives(trees, repository(*kmod), tags, repository(*glibc), glibcTags, filepath.Join(facts, "directive", "data", "directives.txt"))
	case "tuned":
		return writeTuned(repository(*tuned), filepath.Join(facts, "tuned", "data", "tuned.txt"))
	case "containers":
		return writeContainers(repository(*docker), repository(*podman), filepath.Join(facts, "container", "data"))
	case "kernels":
		return updateKernels(filepath.Join(facts, "kernel", "facts.bin"), indexes)
	case "threads":
		return writeThreads(*sources, filepath.Join(facts, "linux"))
	case "idle":
		return writeIdle(*sources, filepath.Join(facts, "idle", "data", "idle.txt"))
	case "interfaces":
		return writeInterfaces(*sources, repository(*metaTegra), filepath.Join(facts, "netif", "data", "interfaces.txt"))
	case "names":
		return writeNames(*sources, *metaTegra, filepath.Join(facts, "linux"))
	}
	return fmt.Errorf("unknown command %q: want update, machines, units, renamed, kernel-recipes, variables, packages, system, directives, tuned, containers, kernels, names, threads, interfaces or idle", args[0])
}

// writeJSON writes v so that a change of one fact is a change of one line.
func writeJSON(file string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text, err := layOut(raw)
	if err != nil {
		return err
	}
	return writeFile(file, text)
}

// writeFile writes data unless the file has it already.
func writeFile(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	return renameio.WriteFile(path, data, 0o644)
}
