package bitbake

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/tests/bitbake/bbref"
)

// The kernel check of the golden layer, as bitbake runs it.
func TestBuildStopsForAKernelWithoutTheOptions(t *testing.T) {
	const (
		layer    = "../../golden/video-analytics/"
		recipes  = layer + "recipes-kernel/linux/"
		class    = layer + "classes/yoctune_vision_tuning.bbclass"
		fragment = "yoctune-vision-tuning.cfg"
		machine  = "jetson-orin-nano-devkit"
	)
	asked, err := os.ReadFile(recipes + "files/yoctune-on-" + machine + "/" + fragment)
	if err != nil {
		t.Fatal(err)
	}
	origins, err := filepath.Abs(recipes + "origins/" + machine + "/" + fragment + ".origins.json")
	if err != nil {
		t.Fatal(err)
	}
	folder := func(t *testing.T, config string) map[string]string {
		dir := t.TempDir()
		for name, data := range map[string]string{fragment: string(asked), ".config": config} {
			if name == ".config" && data == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return map[string]string{
			"B": dir, "UNPACKDIR": dir, "YOCTUNE_KERNEL_CHECK": "error",
			"YOCTUNE_KERNEL_REQUESTS": " " + fragment, "YOCTUNE_KERNEL_ORIGINS": " " + origins,
		}
	}
	run := func(t *testing.T, variables map[string]string) (output string, errors int) {
		var lines []string
		for _, p := range bbref.Run(t, class, "do_yoctune_kernel_check", variables) {
			lines = append(lines, p.Level+": "+p.Message)
			if p.Level == "error" {
				errors++
			}
		}
		return strings.Join(lines, "\n"), errors
	}

	t.Run("as asked for", func(t *testing.T) {
		if output, _ := run(t, folder(t, string(asked)+"CONFIG_OTHER=y\n")); output != "" {
			t.Errorf("the output is %s", output)
		}
	})
	const lost = "CONFIG_TCP_CONG_BBR: wanted m, actual not in .config"
	without := strings.ReplaceAll(string(asked), "CONFIG_TCP_CONG_BBR=m\n", "")
	t.Run("an option lost", func(t *testing.T) {
		output, errors := run(t, folder(t, without))
		if errors == 0 || !strings.Contains(output, lost) || !strings.Contains(output, "config.cue:") || strings.Count(output, "CONFIG_") != 1 {
			t.Errorf("%d errors: %s", errors, output)
		}
	})
	t.Run("an option lost, and only a warning wanted", func(t *testing.T) {
		variables := folder(t, without)
		variables["YOCTUNE_KERNEL_CHECK"] = "warn"
		output, errors := run(t, variables)
		if errors > 0 || !strings.Contains(output, "warning: ") || !strings.Contains(output, lost) {
			t.Errorf("%d errors: %s", errors, output)
		}
	})
	t.Run("no .config", func(t *testing.T) {
		if output, errors := run(t, folder(t, "")); errors == 0 || !strings.Contains(output, "cannot be checked") {
			t.Errorf("%d errors: %s", errors, output)
		}
	})
	t.Run("a whole .config", func(t *testing.T) {
		path := os.Getenv("YOCTUNE_DOTCONFIG")
		if path == "" {
			t.Skip("set YOCTUNE_DOTCONFIG to a kernel's .config, such as Debian's linux-config packages have")
		}
		config, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		output, _ := run(t, folder(t, string(config)))
		t.Log(output)
		for line := range strings.Lines(string(asked)) {
			symbol, _, ok := strings.Cut(strings.TrimSpace(line), "=")
			if ok && strings.HasPrefix(symbol, "CONFIG_") {
				held := strings.Contains("\n"+string(config), "\n"+strings.TrimSpace(line)+"\n")
				if held == strings.Contains(output, symbol+":") {
					t.Errorf("%s holds: %t", strings.TrimSpace(line), held)
				}
			}
		}
	})
}
