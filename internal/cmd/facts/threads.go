package main

import (
	"fmt"
	"os"

	"github.com/yoctune/yoctune/internal/kernelsource"
	"github.com/yoctune/yoctune/schema/facts/kernel"
	"github.com/yoctune/yoctune/schema/facts/linux"
)

// writeThreads writes the tables of kernel threads and of features of network interfaces, from
// the sources of [writeNames].
func writeThreads(mirror, out string) error {
	threads, features := nameTable{}, nameTable{}
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
			addThreads(threads, tree, tree.Objects(), p, s, n)
			for _, name := range tree.NetFeatures() {
				features.add(name, "", n)
			}
			fmt.Fprintf(os.Stderr, "facts: %s %s: %d threads, %d features so far\n", set.Name, s.Repository, len(threads), len(features))
		}
	}
	return writeTables(out, map[string]nameTable{"threads.bin": threads, "features.bin": features})
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
