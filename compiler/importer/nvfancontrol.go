package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/yoctune/yoctune/schema/formats/nvfancontrol"
)

// fanTable is a FAN_PROFILE as it was read.
type fanTable struct {
	name string
	head *Line
	rows []fanLine
}

type fanLine struct {
	line *Line
	nvfancontrol.Point
}

// readNVFanControl reads nvfancontrol.conf. Its profiles become curves in degrees of the chip;
// with TMARGIN the first column is the margin below GROUP_MAX_TEMP. The daemon's other
// settings stay in the BSP's file, which the build only extends.
func (im *importer) readNVFanControl(lines []*Line, _ Source) {
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
		parsed := nvfancontrol.ParseLine(l.Text)
		value := parsed.Value
		switch {
		case parsed.Kind == nvfancontrol.End:
			open = nil
			l.markUnderstood("")
		case parsed.Kind == nvfancontrol.FanStart:
			fans++
			if fans > 1 {
				l.leave("every fan has the same profiles in yoctune")
				continue
			}
			l.markUnderstood("")
		case parsed.Kind == nvfancontrol.Default && parsed.Name == "PROFILE":
			im.importFanProfile(l, value, tables)
		case parsed.Kind == nvfancontrol.Default && parsed.Name == "GOVERNOR" && slices.Contains([]string{"cont", "pid"}, value):
			im.setField(l, quoteCUE(value), "fan", "governor")
		case parsed.Kind == nvfancontrol.Default && parsed.Name == "CONTROL" && slices.Contains([]string{"open_loop", "close_loop"}, value):
			im.setField(l, quoteCUE(value), "fan", "control")
		case parsed.Kind == nvfancontrol.Margin:
			margin = value == "ENABLED"
			if margin {
				l.markUnderstood("its temperatures are margins below the limit; curves are in degrees of the chip")
			} else {
				l.markUnderstood("its temperatures are those of the chip")
			}
		case parsed.Kind == nvfancontrol.MaxTemp:
			if n, ok := number(value); ok && n > 0 && n < 1000 {
				limit = n
			}
			l.markUnderstood("the build takes it from the BSP's file")
		case parsed.Kind == nvfancontrol.Profile && nvfancontrol.IsName(value) && fans <= 1:
			open = &fanTable{name: value, head: l}
			tables = append(tables, open)
		case parsed.Kind == nvfancontrol.Row && open != nil:
			open.rows = append(open.rows, fanLine{l, parsed.Point})
		default:
			open = nil
			l.leave("the BSP's own value stays")
		}
	}
	for _, t := range tables {
		im.importFanCurve(t, margin, limit)
	}
}

func (im *importer) importFanProfile(l *Line, name string, own []*fanTable) {
	known := false
	for _, t := range own {
		known = known || t.name == name
	}
	fan := im.board.Fan
	switch {
	case !nvfancontrol.IsName(name):
		l.leave("not the name of a profile")
	case known, fan == nil, slices.Contains(fan.Profiles, name):
		im.setField(l, quoteCUE(name), "fan", "profile")
	default:
		l.addTrap(fanTableTrap)
		l.leavef("the BSP's file has no profile %s; it has %s", clean(name), strings.Join(fan.Profiles, ", "))
	}
}

// importFanCurve converts a table to a curve. A table that would mislead the fan is left.
func (im *importer) importFanCurve(t *fanTable, margin bool, limit int64) {
	why, at := "", -1
	last := nvfancontrol.Point{Temp: -1}
	for i, r := range t.rows {
		switch {
		case r.Temp <= last.Temp:
			why, at = "temperatures do not rise along the table", i
		case r.PWM > 255:
			why, at = "a pulse width ends at 255", i
		case r.Temp > limit:
			why, at = fmt.Sprintf("it is beyond the limit of %d C", limit), i
		case i > 0 && margin && r.PWM > last.PWM, i > 0 && !margin && r.PWM < last.PWM:
			why, at = "the fan slows down as the chip gets hotter", i
		}
		if why != "" {
			break
		}
		last = r.Point
	}
	if why == "" && len(t.rows) < 2 {
		why = "it has no table of two points or more"
	}
	if why != "" {
		t.head.leavef("profile %s: %s", t.name, why)
		for i, r := range t.rows {
			r.line.leavef("profile %s is left", t.name)
			if i == at {
				r.line.addTrap(fanTableTrap)
			}
		}
		return
	}
	t.head.markUnderstood("")
	for _, r := range t.rows {
		degrees := r.Temp
		if margin {
			degrees = limit - degrees
		}
		point := []string{"fan", "curves", t.name, fmt.Sprintf("%dC", degrees)}
		im.setField(r.line, fmt.Sprint(r.PWM), append(point[:4:4], "pwm")...)
		if r.RPM > 0 {
			im.setField(r.line, fmt.Sprint(r.RPM), append(point[:4:4], "rpm")...)
		}
		if r.Hysteresis > 0 {
			im.setField(r.line, quoteCUE(fmt.Sprintf("%dC", r.Hysteresis)), append(point[:4:4], "hysteresis")...)
		}
	}
}
