package resolve

import (
	"fmt"
	"strings"

	"github.com/yoctune/yoctune/compiler/diag"
	"github.com/yoctune/yoctune/compiler/language/config"
	"github.com/yoctune/yoctune/schema/facts/board"
	"github.com/yoctune/yoctune/schema/facts/release"
	"github.com/yoctune/yoctune/schema/formats/boardfile"
)

// IsOwn reports whether a board file alone describes the target's board: it is not a module of the
// facts, and its layer needs openembedded-core only.
func (t *Target) IsOwn() bool { return t.File != nil && !t.Custom.Base.IsSet() }

// readBoardFile reads the board file of the target's board, if it has one. A file that several
// targets use is read and reported once.
func (p *Project) readBoardFile(t *Target, report *diag.Report) bool {
	at := t.Custom.Facts
	if !at.IsSet() {
		return true
	}
	if !isText(at) {
		return false
	}
	file, known := p.boardFiles[at.Text]
	if !known {
		var err error
		if file, err = p.decodeBoardFile(at.Text); err != nil {
			reportBoard(report, at, fmt.Sprintf("board file: %v", err),
				`run "yoctuned probe --board-file FILE" on the device, and name the file by a path inside the configuration's folder`)
		}
		p.boardFiles[at.Text] = file
	}
	t.File = file
	return file != nil
}

func (p *Project) decodeBoardFile(path string) (*boardfile.File, error) {
	raw, err := p.files.Board(path)
	if err != nil {
		return nil, err
	}
	file, err := boardfile.Decode(raw)
	if err == nil {
		err = file.CheckUse()
	}
	if err != nil {
		return nil, err
	}
	return file, nil
}

func reportBoard(report *diag.Report, at config.Part, message, help string) {
	report.Add(diag.Diagnostic{ID: "YT0212", Severity: diag.Error, Pos: at.Where().Pos(), Path: at.Where().FullPath(), Got: at.Where().Show(), Message: message, Help: help})
}

// checkBoardKind reports a board that is neither around a module nor described by a file, and one
// whose name would make its plans those of a module.
func checkBoardKind(t *Target, report *diag.Report) bool {
	c := t.Custom
	switch _, known := board.Lookup(c.Key()); {
	case !c.Base.IsSet() && !c.Facts.IsSet():
		reportBoard(report, c, fmt.Sprintf("board %s has neither base nor facts", c.Key()),
			`add base, the module of your carrier, or facts, the board file of your device`)
		return false
	case t.IsOwn() && known:
		reportBoard(report, c, fmt.Sprintf("%s is the name of a module that the facts have", c.Key()), "choose another name, or add base")
		return false
	}
	return true
}

// chooseKernel applies kernel.recipe and kernel.version. A board of one's own has no other
// kernel, and takes the series of openembedded-core in place of the BSP's branch.
func (t *Target) chooseKernel(report *diag.Report) bool {
	k := &t.Config.Kernel
	if t.IsOwn() {
		core, ok := t.Release.WithoutBSP()
		if !ok {
			name := t.Config.Release
			report.Add(diag.Diagnostic{ID: "YT0202", Severity: diag.Error, Pos: name.Pos(), Path: name.FullPath(), Got: name.Show(),
				Message:  fmt.Sprintf("%s is a branch of meta-tegra, which board %s does not need", name.Text, t.Custom.Key()),
				Expected: "a series of openembedded-core: " + strings.Join(release.CoreNames(), ", ")})
			return false
		}
		t.Release = core
	}
	if k.Recipe.IsSet() != k.Version.IsSet() || t.IsOwn() && !k.Recipe.IsSet() {
		at := config.Part(k)
		if !k.IsSet() {
			at = t.Config.Board
		}
		message := "kernel.recipe and kernel.version go together"
		if t.IsOwn() {
			message = fmt.Sprintf("board %s needs kernel.recipe and kernel.version", t.Custom.Key())
		}
		reportBoard(report, at, message, `add the kernel that the machine builds, for instance kernel: {recipe: "linux-yocto", version: "6.6"}`)
		return false
	}
	if k.Recipe.IsSet() && isText(k.Recipe) && isText(k.Version) {
		t.Release = t.Release.WithKernel(k.Recipe.Text, k.Version.Text)
	}
	return true
}
