package check

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/internal/lazyregexp"
	containerfacts "github.com/yoctune/yoctune/schema/facts/container"
)

func containerRules() []Rule {
	return []Rule{
		{
			ID: "container-l4t", Severity: diag.Warning,
			Title: "the container image was made for another L4T",
			Cause: "Images for Jetson carry the L4T version they were made for in their tag. The container uses the driver's libraries of the device, and runs with those of the same line only: 32.7 and newer of R32, all of R35, R36 before 36.4, and R36 from 36.4 on.",
			Fix:   "use the image's tag for the L4T of the release",
			Wrong: `services: "a.service": {exec: ["/usr/bin/docker", "run", "registry.example.com/nvidia/l4t-base:r32.7.1"], external: true}`,
			Right: `services: "a.service": {exec: ["/usr/bin/docker", "run", "dustynv/l4t-pytorch:r36.4.0"], external: true}`,
			See:   "dusty-nv/jetson-containers at 019980c7d35e, jetson_containers/l4t_version.py: l4t_version_compatible",
			run:   checkContainerL4T,
		},
		{
			ID: "container-cuda", Severity: diag.Warning,
			Title: "the container image has a newer CUDA than the driver",
			Cause: "The container brings its CUDA libraries, and the device its driver, which is part of L4T and knows CUDA up to a version. A newer runtime fails with cudaErrorInsufficientDriver, unless the image has the cuda-compat libraries for Jetson, which NVIDIA offers from L4T R35 on.",
			Fix:   "use an image with the CUDA of the release, or an older one",
			Wrong: `services: "a.service": {exec: ["/usr/bin/docker", "run", "registry.example.com/nvidia/cuda:13.9.0-runtime-ubuntu24.04"], external: true}`,
			Right: `services: "a.service": {exec: ["/usr/bin/docker", "run", "registry.example.com/nvidia/cuda:11.4.3-runtime-ubuntu20.04"], external: true}`,
			See:   "developer.nvidia.com/blog/simplifying-cuda-upgrades-for-nvidia-jetson-users",
			run:   checkContainerCUDA,
		},
		{
			ID: "container-option", Severity: diag.Error,
			Title: "an option that the container engine does not have",
			Cause: "The option is one slip away from an option of the engine. Engines refuse unknown options, and the container does not start.",
			Fix:   "write the name that the engine has",
			Wrong: `services: "a.service": {exec: ["/usr/bin/docker", "run", "--cpuset-cpu", "4-5", "acme/vision"], external: true}`,
			Right: `services: "a.service": {exec: ["/usr/bin/docker", "run", "--cpuset-cpus", "4-5", "acme/vision"], external: true}`,
			See:   "docker/cli cli/command/container/opts.go, containers/podman cmd/podman/common/create.go",
			run:   checkContainerOption,
		},
		{
			ID: "container-cgroup", Severity: diag.Warning,
			Title: "a limit of the service does not hold its container",
			Cause: "The service's command asks a daemon for the container, which starts in a control group of its own: limits, cores and the slice of the service hold the command alone. Podman has no daemon, and its containers inherit cores, nice and the scheduling policy, but they too have a control group of their own, unless --cgroups is split, no-conmon or disabled.",
			Fix:   "write the engine's own option",
			Wrong: `services: "a.service": {exec: ["/usr/bin/docker", "run", "acme/vision"], external: true, memoryMax: "1GiB"}`,
			Right: `services: "a.service": {exec: ["/usr/bin/docker", "run", "--memory", "1g", "acme/vision"], external: true}`,
			See:   "docker-run(1), podman-run(1)",
			run:   checkContainerCgroup,
		},
	}
}

// madeFor is an L4T version of a tag, such as r36.2.0 or r35.4.1-pth2.1-py3.
var madeFor = regexp.MustCompile(`^[rR](\d\d)\.(\d+)(?:\.\d+)?$`)

// imageL4T finds the L4T version in the tag of an image, as r36.2.0; "" where there is none.
func imageL4T(word string) string {
	name, tag, ok := strings.Cut(word[strings.LastIndexByte(word, '/')+1:], ":")
	if !ok || name == "" {
		return ""
	}
	tag, _, _ = strings.Cut(tag, "@") // the digest
	for _, part := range strings.FieldsFunc(tag, func(r rune) bool { return r == '-' || r == '_' }) {
		if madeFor.MatchString(part) {
			return part[1:]
		}
	}
	return ""
}

// l4tLine names the versions of L4T that share containers with a version; "" where the text is not a version.
func l4tLine(version string) string {
	m := madeFor.FindStringSubmatch("r" + version)
	if m == nil {
		return ""
	}
	minor, err := strconv.Atoi(m[2])
	switch {
	case err != nil:
		return ""
	case m[1] == "32" && minor < 7:
		return "R32." + m[2]
	case m[1] == "32":
		return "R32 from 32.7 on"
	case m[1] == "36" && minor < 4:
		return "R36 before 36.4"
	case m[1] == "36":
		return "R36 from 36.4 on"
	}
	return "R" + m[1]
}

func checkContainerL4T(s *subject) {
	line := l4tLine(s.Release.L4T)
	if line == "" {
		return // a board without L4T
	}
	s.images(func(w config.String, image, of string) {
		if version := imageL4T(image); version != "" && l4tLine(version) != line {
			s.reportAt(w, w.Show(), fmt.Sprintf("use the image's tag for L4T %s (%s)", s.Release.L4T, line),
				"%s of %s is for L4T %s, and %s has %s", image, of, version, s.Release.Name, s.Release.L4T)
		}
	})
}

var (
	// The first part of a tag of NVIDIA's CUDA images, such as 12.2.0-devel-ubuntu22.04.
	cudaTag = lazyregexp.New(`^(\d+)\.(\d+)(?:\.\d+)*$`)
	// A part of a tag of other images, such as cu126 or cuda12.4.
	cudaPart = lazyregexp.New(`^cu(?:da)?(\d\d)\.?(\d)$`)
)

// imageCUDA finds the CUDA version in the tag of an image.
func imageCUDA(word string) (version [2]int, ok bool) {
	name, tag, tagged := strings.Cut(word[strings.LastIndexByte(word, '/')+1:], ":")
	if !tagged {
		return version, false
	}
	tag, _, _ = strings.Cut(tag, "@")
	parts := strings.FieldsFunc(tag, func(r rune) bool { return r == '-' || r == '_' })
	var m []string
	if len(parts) > 0 && (name == "cuda" || name == "l4t-cuda") {
		m = cudaTag.FindStringSubmatch(parts[0])
	}
	for _, part := range parts {
		if m == nil {
			m = cudaPart.FindStringSubmatch(part)
		}
	}
	if m == nil {
		return version, false
	}
	return cudaVersion(m[1] + "." + m[2])
}

func cudaVersion(text string) (version [2]int, ok bool) {
	n, err := fmt.Sscanf(text, "%d.%d", &version[0], &version[1])
	return version, err == nil && n == 2
}

func checkContainerCUDA(s *subject) {
	driver, known := cudaVersion(s.Release.CUDA)
	if !known {
		return
	}
	s.images(func(w config.String, image, of string) {
		if version, ok := imageCUDA(image); ok && slices.Compare(version[:], driver[:]) > 0 {
			s.reportAt(w, w.Show(), fmt.Sprintf("use an image with CUDA %s or older", s.Release.CUDA),
				"%s of %s has CUDA %d.%d, and the driver of %s knows %s", image, of, version[0], version[1], s.Release.Name, s.Release.CUDA)
		}
	})
}

// images calls do for each word of the commands of services and pipelines, which may be the name of
// an image. of names the service or the pipeline.
func (s *subject) images(do func(w config.String, image, of string)) {
	s.commands(func(of string, words []config.String) {
		for _, w := range words {
			for word := range strings.FieldsSeq(w.Text) {
				do(w, strings.Trim(word, `"'`), of)
			}
		}
	})
}

// commands calls check for each command of the services and pipelines.
func (s *subject) commands(check func(of string, words []config.String)) {
	for _, svc := range s.Config.Services.Entries {
		for _, c := range commandsOf(svc) {
			check(svc.Key(), c.Items)
		}
	}
	for c := range s.pipelines() {
		check("pipeline "+c.Key(), c.Source.Exec.Items)
		for _, st := range c.Stages.Sorted() {
			check("pipeline "+c.Key(), st.Exec.Items)
		}
		check("pipeline "+c.Key(), c.Sink.Exec.Items)
	}
}

// engineCall is a command line of a container engine.
type engineCall struct {
	engine  string
	starts  bool // a container: run, create, start or compose
	options []config.String
}

// parseEngine reads the call of a container engine in a command, which may be that of a shell. The
// options are those of "run" and "create" up to the image.
func parseEngine(command []config.String) (engineCall, bool) {
	var words []config.String
	for _, w := range command {
		for word := range strings.FieldsSeq(w.Text) {
			words = append(words, config.String{Place: w.Place, Text: strings.Trim(word, `"'`)})
		}
	}
	at := slices.IndexFunc(words, func(w config.String) bool { return engineOf(w.Text) != "" })
	if at < 0 {
		return engineCall{}, false
	}
	c := engineCall{engine: engineOf(words[at].Text)}
	rest := words[at+1:]
	at = slices.IndexFunc(rest, func(w config.String) bool {
		return slices.Contains([]string{"run", "create", "start", "compose", "up"}, w.Text)
	})
	if at < 0 {
		return c, true
	}
	c.starts = true
	if verb := rest[at].Text; verb != "run" && verb != "create" || at > 0 && rest[at-1].Text == "compose" {
		return c, true
	}
	for rest = rest[at+1:]; len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-"); rest = rest[1:] {
		name, _, inOne := strings.Cut(strings.TrimLeft(rest[0].Text, "-"), "=")
		takes, known := containerfacts.TakesValue(c.engine, name)
		switch long := strings.HasPrefix(rest[0].Text, "--"); {
		case long:
			c.options = append(c.options, rest[0])
			if !known {
				return c, true // whether a value follows is unknown
			}
		case !known && name != "": // letters together; the last one may take a value
			takes, _ = containerfacts.TakesValue(c.engine, name[len(name)-1:])
		}
		if takes && !inOne && len(rest) > 1 {
			rest = rest[1:]
		}
	}
	return c, true
}

// engineOf returns the name of the container engine that a word starts; "" for another word.
func engineOf(word string) string {
	if base := path.Base(strings.TrimLeft(word, "-+!:@|")); base == "docker" || base == "podman" || base == "nerdctl" {
		return base
	}
	return ""
}

func checkContainerOption(s *subject) {
	check := func(of string, words []config.String) {
		call, ok := parseEngine(words)
		if !ok {
			return
		}
		for _, o := range call.options {
			name, _, _ := strings.Cut(strings.TrimPrefix(o.Text, "--"), "=")
			if _, known := containerfacts.TakesValue(call.engine, name); known || len(name) < 3 {
				continue
			}
			if near := containerfacts.Nearest(call.engine, name); near != "" {
				s.reportAt(o, o.Text, fmt.Sprintf("did you mean --%s?", near), "%s run has no option --%s, and the container of %s does not start", call.engine, name, of)
			}
		}
	}
	s.commands(check)
}

func checkContainerCgroup(s *subject) {
	for _, svc := range s.Config.Services.Entries {
		for _, command := range commandsOf(svc) {
			call, ok := parseEngine(command.Items)
			if !ok || !call.starts {
				continue
			}
			isOwn := call.engine == "podman" && slices.ContainsFunc(call.options, func(o config.String) bool {
				return strings.HasPrefix(o.Text, "--cgroups") // the default is enabled, and needs no option
			})
			for _, f := range []struct {
				at      config.Place
				option  string
				inherit bool // by a child of the command
			}{
				{svc.CPUs.Where(), "--cpuset-cpus", true}, {svc.MemoryMax.Where(), "--memory", false}, {svc.MemoryHigh.Where(), "--memory-reservation", false},
				{svc.CPUQuota.Where(), "--cpus", false}, {svc.CPUWeight.Where(), "--cpu-shares", false}, {svc.IOWeight.Where(), "--blkio-weight", false},
				{svc.Slice.Where(), "--cgroup-parent", false}, {svc.CPUPartition.Where(), "", false}, {svc.OOMScoreAdjust.Where(), "--oom-score-adj", true},
				{svc.Nice.Where(), "", true}, {svc.Scheduling.Where(), "", true}, {svc.Priority.Where(), "", true}, {svc.MemoryLock.Where(), "--ulimit memlock=-1", true},
			} {
				if !f.at.IsSet() || isOwn || f.inherit && call.engine == "podman" {
					continue
				}
				help := "set it inside of the container"
				if f.option != "" {
					help = "write " + f.option + " of " + call.engine + " run"
				}
				s.reportAt(f.at, "", help, "%s holds the command %s of %s, not the container that it asks for", f.at.Key(), call.engine, svc.Key())
			}
			break
		}
	}
}
