package importer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler"
	"github.com/yoctune/yoctune/compiler/importer"
)

const fanFile = `POLLING_INTERVAL 2

<FAN 1>
	TMARGIN %s
	FAN_GOVERNOR pid {
		STEP_SIZE 10
	}
	FAN_PROFILE quiet {
		#TEMP 	HYST	PWM	RPM
%s	}
	FAN_PROFILE workshop {
%s	}
	THERMAL_GROUP 0 {
		GROUP_MAX_TEMP 105
		CPU-therm 20,0 0
	}
	FAN_DEFAULT_CONTROL open_loop
	FAN_DEFAULT_PROFILE workshop
	FAN_DEFAULT_GOVERNOR pid
`

// tables reads the rows and the defaults of a file.
func tables(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.Trim(line, "{} \t\n"))
		switch {
		case len(words) == 4 && !strings.HasPrefix(words[0], "#"), len(words) == 2 && (words[0] == "FAN_PROFILE" || strings.HasPrefix(words[0], "FAN_DEFAULT")):
			out = append(out, strings.Join(words, " "))
		}
	}
	return strings.Join(out, "\n")
}

// The tables of a file, imported and built into that same file again, are what
// they were. FAN_FILE names one more file to try, such as a BSP's own.
func TestFanTablesRoundTrip(t *testing.T) {
	files := map[string]string{
		"margins": fmt.Sprintf(fanFile, "ENABLED", "\t\t0 0 255 5000\n\t\t11 0 187 4000\n\t\t105 0 0 0\n", "\t\t0 0 255 5000\n\t\t40 5 120 2400\n\t\t105 0 60 1200\n"),
		"degrees": fmt.Sprintf(fanFile, "DISABLED", "\t\t0 8 77 1400\n\t\t63 8 120 2000\n\t\t105 0 255 4000\n", "\t\t0 0 0 0\n\t\t105 0 255 4000\n"),
	}
	if name := os.Getenv("FAN_FILE"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = string(text)
	}
	for name, text := range files {
		got, err := importer.Import([]importer.Source{{Name: "nvfancontrol.conf", Text: []byte(text)}}, importer.Options{
			Board: "orin-nano-8gb", Release: "scarthgap", Layer: "box", Maintainer: "Team <team@example.com>"})
		if err != nil {
			t.Fatal(err)
		}
		p := compiler.OpenFiles(map[string][]byte{"config.cue": got.Config})
		p.Verify()
		layers := p.Layers(compiler.Selection{})
		if p.Report.Failed() || len(layers) != 1 {
			t.Fatalf("%s: the imported configuration does not build: %v\n%s", name, p.Report.All(), got.Config)
		}
		folder := t.TempDir()
		installed, program := filepath.Join(folder, "nvfancontrol.conf"), filepath.Join(folder, "program.py")
		write := func(name string, data []byte) {
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write(installed, []byte(text))
		args := []string{"-I", program, "--stock", "stock.conf", installed}
		for _, f := range layers[0].Files {
			switch {
			case strings.HasSuffix(f.Path, ".inc") && strings.Contains(f.Path, "tegra-nvfancontrol"):
				for _, key := range []string{"PROFILE", "GOVERNOR", "CONTROL"} {
					_, rest, ok := strings.Cut(string(f.Data), "YOCTUNE_FAN_"+key+":yoctune-on-jetson-orin-nano-devkit = \"")
					if value, _, _ := strings.Cut(rest, "\""); ok {
						args = append(args, "--"+strings.ToLower(key), value)
					}
				}
			case strings.HasSuffix(f.Path, "nvfancontrol.py"):
				write(program, f.Data)
			case strings.HasSuffix(f.Path, "fan-profiles.conf"):
				write(installed+".profiles", f.Data)
				args = append(args, "--profiles", installed+".profiles")
			}
		}
		if output, err := exec.Command("python3", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %q: %v\n%s", name, args, err, output)
		}
		out, err := os.ReadFile(installed)
		if err != nil {
			t.Fatal(err)
		}
		if was, now := tables(text), tables(string(out)); was != now {
			t.Errorf("%s: was\n%s\nis\n%s", name, was, now)
		}
	}
}
