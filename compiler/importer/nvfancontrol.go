package importer

import (
	"fmt"
	"strings"
)

// fanTable is a FAN_PROFILE as it was read.
type fanTable struct {
	name string
	head *Line
	rows []fanLine
}

type fanLine struct {
	line *Line
	row  []int64 // TEMP HYST PWM RPM
}

// nvfancontrol reads nvfancontrol.conf. Its profiles become curves in degrees of
// the chip; with TMARGIN the first column is what is left to GROUP_MAX_TEMP. What
// the daemon is besides its profiles stays in the BSP's file, which the build
// only adds to.
func (im *importer) nvfancontrol(lines []*Line, _ Source) {
	margin, limit := false, int64(0)
	if fan := im.board.Fan; fan != nil {
		margin, limit = fan.TMargin != nil && *fan.TMargin, int64(fan.MaxTemp)
	}
	if limit == 0 {
		limit = 105
	}
	var (
		tables []*fanTable
		open   *fanTable
		fans   int
	)
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		words := strings.Fields(strings.Trim(l.Text, "<>{} "))
		switch {
		case len(words) == 0:
			open = nil
			l.understood("")
		case words[0] == "FAN" && len(words) == 2:
			fans++
			if fans > 1 {
				l.left("yoctune gives every fan the same profiles")
				continue
			}
			l.understood("")
		case words[0] == "FAN_DEFAULT_PROFILE" && len(words) == 2:
			im.fanProfile(l, words[1], tables)
		case words[0] == "FAN_DEFAULT_GOVERNOR" && len(words) == 2 && contains([]string{"cont", "pid"}, words[1]):
			im.set(l, quoted(words[1]), "fan", "governor")
		case words[0] == "FAN_DEFAULT_CONTROL" && len(words) == 2 && contains([]string{"open_loop", "close_loop"}, words[1]):
			im.set(l, quoted(words[1]), "fan", "control")
		case words[0] == "TMARGIN" && len(words) == 2:
			margin = words[1] == "ENABLED"
			if margin {
				l.understood("its temperatures are margins below the limit; curves are in degrees of the chip")
			} else {
				l.understood("its temperatures are those of the chip")
			}
		case words[0] == "GROUP_MAX_TEMP" && len(words) == 2:
			if n, ok := number(words[1]); ok && n > 0 && n < 1000 {
				limit = n
			}
			l.understood("the build takes it from the BSP's file")
		case words[0] == "FAN_PROFILE" && len(words) == 2 && fanName(words[1]) && fans <= 1:
			open = &fanTable{name: words[1], head: l}
			tables = append(tables, open)
		case open != nil && fanRow(words) != nil:
			open.rows = append(open.rows, fanLine{l, fanRow(words)})
		default:
			open = nil
			l.left("it stays as the BSP's file has it")
		}
	}
	for _, t := range tables {
		im.fanCurve(t, margin, limit)
	}
}

func (im *importer) fanProfile(l *Line, name string, own []*fanTable) {
	known := false
	for _, t := range own {
		known = known || t.name == name
	}
	fan := im.board.Fan
	switch {
	case !fanName(name):
		l.left("not the name of a profile")
	case known, fan == nil, contains(fan.Profiles, name):
		im.set(l, quoted(name), "fan", "profile")
	default:
		l.trap(FanTable)
		l.leftf("the BSP's file has no profile %s; it has %s", clean(name), strings.Join(fan.Profiles, ", "))
	}
}

// fanCurve makes a curve of a table. A table that misleads the fan is left whole.
func (im *importer) fanCurve(t *fanTable, margin bool, limit int64) {
	why, at := "", -1
	last := []int64{-1, 0, 0, 0}
	for i, r := range t.rows {
		switch {
		case r.row[0] <= last[0]:
			why, at = "temperatures do not rise along the table", i
		case r.row[2] > 255:
			why, at = "a pulse width ends at 255", i
		case r.row[0] > limit:
			why, at = fmt.Sprintf("it is beyond the limit of %d C", limit), i
		case i > 0 && margin && r.row[2] > last[2], i > 0 && !margin && r.row[2] < last[2]:
			why, at = "the fan slows down as the chip gets hotter", i
		}
		if why != "" {
			break
		}
		last = r.row
	}
	if why == "" && len(t.rows) < 2 {
		why = "it has no table of two points or more"
	}
	if why != "" {
		t.head.leftf("profile %s: %s", t.name, why)
		for i, r := range t.rows {
			r.line.leftf("profile %s is left", t.name)
			if i == at {
				r.line.trap(FanTable)
			}
		}
		return
	}
	t.head.understood("")
	for _, r := range t.rows {
		degrees := r.row[0]
		if margin {
			degrees = limit - degrees
		}
		point := []string{"fan", "curves", t.name, fmt.Sprintf("%dC", degrees)}
		im.set(r.line, fmt.Sprint(r.row[2]), append(point[:4:4], "pwm")...)
		if r.row[3] > 0 {
			im.set(r.line, fmt.Sprint(r.row[3]), append(point[:4:4], "rpm")...)
		}
		if r.row[1] > 0 {
			im.set(r.line, quoted(fmt.Sprintf("%dC", r.row[1])), append(point[:4:4], "hysteresis")...)
		}
	}
}

// fanRow reads TEMP HYST PWM RPM.
func fanRow(words []string) []int64 {
	if len(words) != 4 {
		return nil
	}
	var row []int64
	for _, w := range words {
		n, ok := number(w)
		if !ok || n < 0 || n > 100000 {
			return nil
		}
		row = append(row, n)
	}
	return row
}

// fanName tells whether the language can name a profile so.
func fanName(s string) bool {
	return s != "" && len(s) <= 32 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
