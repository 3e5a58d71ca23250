package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
)

// What follows the image, values of options and letters written together are no options of the engine.
func TestOptionsOfContainerEngines(t *testing.T) {
	for command, want := range map[string]string{
		`"/usr/bin/docker", "run", "--cpuset-cpu=4", "a/b"`:                                     "container-option",
		`"/bin/sh", "-c", "exec docker run -it --rm --memori 1g a/b"`:                           "container-option",
		`"/usr/bin/podman", "create", "--network-alia", "x", "a/b"`:                             "container-option",
		`"/usr/bin/docker", "run", "-it", "-v", "/a:/b", "--env", "--memori", "a/b", "--cpu=1"`: "",
		`"/usr/bin/docker", "run", "--gpus", "all", "--runtime=nvidia", "--net", "host", "a/b"`: "",
		`"/usr/bin/docker", "run", "--of-a-plugin", "--memori", "a/b"`:                          "",
		`"/usr/bin/docker", "compose", "run", "--cpuset-cpu", "app"`:                            "",
	} {
		for _, field := range []string{"", ", memoryMax: \"1GiB\""} {
			var ids []string
			target := fmt.Sprintf(`{board: "orin-nano-8gb", release: "scarthgap", services: "a.service": {exec: [%s], external: true%s}}`, command, field)
			for _, d := range compiler.OpenFiles(map[string][]byte{"config.cue": []byte(inTarget(target))}).Report.All() {
				if strings.HasPrefix(d.ID, "container-") {
					ids = append(ids, d.ID)
				}
			}
			if slices.Contains(ids, "container-option") != (want != "") || slices.Contains(ids, "container-cgroup") != (field != "") {
				t.Errorf("%s%s: %v", command, field, ids)
			}
		}
	}
}
