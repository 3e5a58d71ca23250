package importer

import (
	"strings"
)

// nvfancontrol reads nvfancontrol.conf. The language has no fan tables: the
// file is judged, and left to the BSP.
func (im *importer) nvfancontrol(lines []*Line, _ Source) {
	lastTemp := int64(-1)
	for _, l := range lines {
		if l.Verdict != "" {
			continue
		}
		words := strings.Fields(strings.Trim(l.Text, "<>{} "))
		if len(words) == 0 {
			l.understood("")
			continue
		}
		switch {
		case words[0] == "FAN_DEFAULT_PROFILE" && len(words) == 2:
			im.fanProfile(l, words[1])
		case words[0] == "TMARGIN":
			l.left("the fan is nvfancontrol's; with TMARGIN the temperatures are margins below the limit")
		case words[0] == "FAN_PROFILE" || words[0] == "FAN":
			lastTemp = -1
			l.left("the fan is nvfancontrol's: yoctune has no field for it")
		case fanRow(words) != nil:
			row := fanRow(words)
			l.left("the fan is nvfancontrol's: yoctune has no field for its table")
			if row[0] <= lastTemp || row[2] > 255 {
				l.trap(FanTable)
			}
			lastTemp = row[0]
		default:
			l.left("the fan is nvfancontrol's: yoctune has no field for it")
		}
	}
}

func (im *importer) fanProfile(l *Line, name string) {
	fan := im.board.Fan
	switch {
	case fan == nil:
		l.left("nothing is known about the fan of " + im.board.ID)
	case fan.Default == name:
		l.understood("the BSP's own default")
	case contains(fan.Profiles, name):
		l.leftf("yoctune has no field for the fan; the BSP's default is %s", fan.Default)
	default:
		l.trap(FanTable)
		l.leftf("the BSP's file has no profile %s; it has %s", clean(name), strings.Join(fan.Profiles, ", "))
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
		if !ok {
			return nil
		}
		row = append(row, n)
	}
	return row
}
