package main

import (
	"os/exec"
	"strings"
	"testing"
)

// What runs on the device must not carry the compiler: it would cost start-up
// time and memory, and bring parsers of hostile text into a root process.
func TestTheDeviceProgramLinksNoCompiler(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		for _, wall := range []string{
			"cuelang.org/", "github.com/hashicorp/hcl", "github.com/google/go-jsonnet",
			"github.com/yoctune/yoctune/compiler", "github.com/yoctune/yoctune/emitters", "net/http",
		} {
			if dep == strings.TrimSuffix(wall, "/") || strings.HasPrefix(dep, strings.TrimSuffix(wall, "/")+"/") || dep == "github.com/yoctune/yoctune/schema" {
				t.Errorf("yoctuned links %s", dep)
			}
		}
	}
}
