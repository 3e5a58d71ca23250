package check

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
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
	check := func(of string, words []config.String) {
		for _, w := range words {
			for word := range strings.FieldsSeq(w.Text) {
				image := strings.Trim(word, `"'`)
				if version := imageL4T(image); version != "" && l4tLine(version) != line {
					s.reportAt(w, w.Show(), fmt.Sprintf("use the image's tag for L4T %s (%s)", s.Release.L4T, line),
						"%s of %s is for L4T %s, and %s has %s", image, of, version, s.Release.Name, s.Release.L4T)
				}
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
