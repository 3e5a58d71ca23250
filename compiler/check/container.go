package check

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/internal/lazyregexp"
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
	check := func(of string, words []config.String) {
		for _, w := range words {
			for word := range strings.FieldsSeq(w.Text) {
				do(w, strings.Trim(word, `"'`), of)
			}
		}
	}
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
