// Boardfacts writes the data files of schema/facts from what was researched, so
// that facts are changed in one place and the files never by hand.
//
//	boardfacts machines  -meta-tegra REPO -o schema/facts/release/data/machines.json
//	boardfacts units     -meta-tegra REPO -o schema/facts/release/data/units.json
//	boardfacts variables -oe-core REPO -bitbake REPO -o schema/facts/release/data/variables.json
//	boardfacts boards    -research boards.json -o schema/facts/board/data
//	boardfacts sysctls   -research sysctls.json -o schema/facts/sysctl/data/sysctls.json
//
// machines, units and variables read branches of a git repository with "git show"; a
// bare one serves. docs/facts.md describes the research files.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "boardfacts:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want one of: machines, units, variables, boards, sysctls")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	var (
		research  = flags.String("research", "", "research `file`")
		metaTegra = flags.String("meta-tegra", "", "git `repository` of OE4T/meta-tegra")
		oeCore    = flags.String("oe-core", "", "git `repository` of openembedded-core")
		bitbake   = flags.String("bitbake", "", "git `repository` of bitbake")
		out       = flags.String("o", "", "`path` to write")
	)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *out == "" {
		return fmt.Errorf("%s: -o is missing", args[0])
	}
	switch args[0] {
	case "machines":
		return writeMachines(repository(*metaTegra), *out)
	case "units":
		return writeUnits(repository(*metaTegra), *out)
	case "variables":
		return writeVariables(repository(*oeCore), repository(*bitbake), *out)
	case "boards":
		return writeBoards(*research, *out)
	case "sysctls":
		return writeSysctls(*research, *out)
	}
	return fmt.Errorf("unknown kind of facts %q: want machines, units, variables, boards or sysctls", args[0])
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, data, 0o644)
}
