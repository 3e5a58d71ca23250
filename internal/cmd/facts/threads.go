package main

import (
	"fmt"
	"os"

	"github.com/yoctune/yoctune/internal/kernelsource"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
)

// writeThreads writes the tables of kernel threads, of features of network interfaces, and of
// disks, from the sources of [writeNames].
func writeThreads(mirror, out string) error {
	threads, features, disks := nameTable{}, nameTable{}, nameTable{}
	for n, set := range kernel.Sets() {
		facts, _, err := kernel.Open(set.Name)
		if err != nil {
			return err
		}
		p := findPossible(facts)
		for _, s := range linux.Sources() {
			if s.Kernel != set.Name {
				continue
			}
			tree, err := readSource(mirror, s)
			if err != nil {
				return err
			}
			objects := tree.Objects()
			addThreads(threads, tree, objects, p, s, n)
			if !s.OutOfTree {
				addDisks(disks, tree, objects, p, n)
			}
			for _, name := range tree.NetFeatures() {
				features.add(name, "", n)
			}
			fmt.Fprintf(os.Stderr, "facts: %s %s: %d threads, %d features, %d kinds of disks so far\n", set.Name, s.Repository, len(threads), len(features), len(disks))
		}
	}
	return writeTables(out, map[string]nameTable{"threads.bin": threads, "features.bin": features, "disks.bin": disks})
}

// addThreads adds the kernel threads that an arm64 kernel can have.
func addThreads(threads nameTable, tree *kernelsource.Tree, objects []kernelsource.Object, p *possible, s linux.Source, n int) {
	needs, bound := map[string][][]string{}, map[string]bool{}
	for _, th := range tree.Threads(objects) {
		if s.OutOfTree {
			th.Needs = nil
		} else if !p.all(th.Needs) {
			continue
		}
		needs[th.Name] = append(needs[th.Name], th.Needs)
		bound[th.Name] = bound[th.Name] || th.Bound
	}
	for name, lists := range needs {
		mark := ""
		if bound[name] {
			mark = "bound"
		}
		threads.add(name, alternatives(lists)+";"+mark, n)
	}
}

// addDisks adds the kinds of disks that an arm64 kernel can have, and the limits of their queues.
func addDisks(disks nameTable, tree *kernelsource.Tree, objects []kernelsource.Object, p *possible, n int) {
	limits := tree.QueueLimits()
	disks.add(linux.QueueLimitsLine, fmt.Sprintf("%d;%d", limits.Min, limits.Scheduler), n)
	for _, d := range tree.Disks(objects) {
		if !p.all(d.Needs) {
			continue
		}
		queue := ""
		switch {
		case d.Queued:
			queue = "q"
		case d.Direct:
			queue = "d"
		}
		disks.add(d.Names, fmt.Sprintf("%d;%s;%d;%s;%s", d.Depth, d.Param, d.Less, queue, d.Source), n)
	}
}
