package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/yoctune/yoctune/runtime/engine/worker"
)

// enterEnvironment executes the program again with the environment of a pipeline. Allocators and
// OpenMP read theirs when a process starts. It returns if the environment is in force.
func enterEnvironment(environment map[string]string) error {
	var set []string
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if os.Getenv(name) != environment[name] {
			set = append(set, name)
		}
	}
	names := strings.Join(slices.Sorted(maps.Keys(environment)), ",")
	if len(set) == 0 && os.Getenv(worker.PassedNames) == names {
		return nil
	}
	if os.Getenv(worker.PassedNames) == names {
		return fmt.Errorf("environment of the pipeline: %s cannot be set", strings.Join(set, ", "))
	}
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("environment of the pipeline: %s: %w", name, err)
		}
	}
	if err := os.Setenv(worker.PassedNames, names); err != nil {
		return fmt.Errorf("environment of the pipeline: %w", err)
	}
	return fmt.Errorf("environment of the pipeline: %w", unix.Exec("/proc/self/exe", os.Args, os.Environ()))
}
