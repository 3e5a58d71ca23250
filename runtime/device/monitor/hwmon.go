package monitor

import (
	"path"
	"strconv"
	"strings"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// findHwmon adds a sensor for each chip that measures power, fans or over-current. Chips are
// identified by name, since hwmon numbers change between boots.
func findHwmon(dev rootfs.FS, add adder) {
	for _, dir := range listNumbered(dev, "/sys/class/hwmon", "hwmon") {
		name, err := readText(dev, dir+"/name")
		if err != nil {
			continue
		}
		names, err := dev.List(dir)
		if err != nil {
			continue
		}
		switch {
		case strings.HasPrefix(name, "ina"):
			findRails(dev, dir, name, names, add)
		case name == "pwmfan" || name == "tachometer" || name == "generic_pwm_tachometer":
			findFan(dev, dir, name, names, add)
		case name == "soctherm_oc":
			findAlarms(dev, dir, names, add)
		}
	}
}

// channel is the files of a channel: a power, or a voltage in mV and a current in mA.
type channel struct {
	label         string
	power         string
	perMilliwatt  int64 // units of the power file in a milliwatt
	volts, ampere string
}

func findRails(dev rootfs.FS, dir, chip string, names []string, add adder) {
	has := map[string]bool{}
	for _, n := range names {
		has[n] = true
	}
	var channels []channel
	for n := 1; n <= 8; n++ {
		i := strconv.Itoa(n)
		c := channel{perMilliwatt: 1000}
		if has["in"+i+"_input"] && has["curr"+i+"_input"] {
			c.volts, c.ampere = dir+"/in"+i+"_input", dir+"/curr"+i+"_input"
		}
		if has["power"+i+"_input"] {
			c.power = dir + "/power" + i + "_input" // microwatts
		}
		if c.volts == "" && c.power == "" {
			continue
		}
		c.label = chip
		for _, l := range []string{"in" + i + "_label", "power" + i + "_label"} {
			if t := readOptional(dev, dir+"/"+l); t != nil {
				c.label = *t
				break
			}
		}
		// NVIDIA's device trees label unconnected pins NC. The seventh channel of an INA3221
		// is the sum of shunt voltages.
		if c.label == NotConnected || strings.HasPrefix(c.label, "sum of shunt") {
			continue
		}
		channels = append(channels, c)
	}
	addRails(dev, "power monitor "+path.Base(dir), channels, add)
}

func addRails(dev rootfs.FS, name string, channels []channel, add adder) {
	if len(channels) == 0 {
		return
	}
	add(name, func(s *Sample) {
		for _, c := range channels {
			s.Rails = append(s.Rails, Rail{Label: c.label})
		}
	}, func() (apply, error) {
		var rails []Rail
		var failed error
		for _, c := range channels {
			r := Rail{Label: c.label}
			if c.volts != "" {
				r.Voltage, r.Current = readOptionalNumber(dev, c.volts), readOptionalNumber(dev, c.ampere)
			}
			if c.power != "" {
				n, err := readNumber(dev, c.power)
				if err == nil {
					r.Power = new(n / c.perMilliwatt)
				}
				failed = err
			}
			if r.Power == nil && r.Voltage != nil && r.Current != nil && *r.Voltage < 1<<31 && *r.Current < 1<<31 {
				r.Power = new(*r.Voltage * *r.Current / 1000)
			}
			rails = append(rails, r)
		}
		return func(s *Sample) { s.Rails = append(s.Rails, rails...) }, failed
	})
}

// findIIO adds the power monitors of L4T R32, industrial I/O devices that report
// milliwatts.
func findIIO(dev rootfs.FS, add adder) {
	for _, dir := range listNumbered(dev, "/sys/bus/iio/devices", "iio:device") {
		name, err := readText(dev, dir+"/name")
		if err != nil || !strings.HasPrefix(name, "ina") {
			continue
		}
		var channels []channel
		for n := range 3 {
			i := strconv.Itoa(n)
			label := readOptional(dev, dir+"/rail_name_"+i)
			if label == nil || *label == NotConnected {
				continue
			}
			channels = append(channels, channel{
				label: *label, power: dir + "/in_power" + i + "_input", perMilliwatt: 1,
				volts: dir + "/in_voltage" + i + "_input", ampere: dir + "/in_current" + i + "_input",
			})
		}
		addRails(dev, "power monitor "+path.Base(dir), channels, add)
	}
}

func findFan(dev rootfs.FS, dir, name string, names []string, add adder) {
	pwm, rpm := "", ""
	for _, n := range names {
		switch n {
		case "pwm1":
			pwm = dir + "/pwm1"
		case "fan1_input", "rpm":
			rpm = dir + "/" + n
		}
	}
	if pwm == "" && rpm == "" {
		return
	}
	add("fan "+path.Base(dir), func(s *Sample) { s.Fans = append(s.Fans, Fan{Name: name}) }, func() (apply, error) {
		f := Fan{Name: name}
		if pwm != "" {
			f.PWM = inRange(readOptionalNumber(dev, pwm), 0, 255)
		}
		if rpm != "" {
			f.RPM = inRange(readOptionalNumber(dev, rpm), 0, 1<<20)
		}
		return func(s *Sample) { s.Fans = append(s.Fans, f) }, nil
	})
}

// findAlarms adds the over-current counters: oc1_irq_cnt on Xavier, oc1_event_cnt since
// Orin.
func findAlarms(dev rootfs.FS, dir string, names []string, add adder) {
	var files []string
	for _, n := range names {
		if strings.HasPrefix(n, "oc") && (strings.HasSuffix(n, "_irq_cnt") || strings.HasSuffix(n, "_event_cnt")) {
			files = append(files, n)
		}
	}
	if len(files) == 0 {
		return
	}
	label := func(file string) string { n, _, _ := strings.Cut(file, "_"); return n }
	add("over-current counters", func(s *Sample) {
		for _, f := range files {
			s.Alarms = append(s.Alarms, Alarm{Name: label(f)})
		}
	}, func() (apply, error) {
		var out []Alarm
		for _, f := range files {
			out = append(out, Alarm{Name: label(f), Events: readOptionalNumber(dev, dir+"/"+f)})
		}
		return func(s *Sample) { s.Alarms = append(s.Alarms, out...) }, nil
	})
}

// findZones adds the thermal zones, identified by type since their numbers depend on the
// device tree.
func findZones(dev rootfs.FS, add adder) {
	for _, dir := range listNumbered(dev, "/sys/class/thermal", "thermal_zone") {
		typ, err := readText(dev, dir+"/type")
		if err != nil {
			continue
		}
		blank := Zone{Name: typ, Placeholder: typ == "PMIC-Die"}
		for _, t := range readTrips(dev, dir) {
			switch t.kind {
			case "passive":
				if blank.Passive == nil || t.temp < *blank.Passive {
					blank.Passive = new(t.temp)
				}
			case "critical":
				blank.Critical = new(t.temp)
			}
		}
		add("temperature "+typ, func(s *Sample) { s.Zones = append(s.Zones, blank) }, func() (apply, error) {
			z := blank
			temp, err := readNumber(dev, dir+"/temp")
			// The zone of an unpowered unit fails to read, or reads 0 or -256 °C.
			off := strings.HasPrefix(strings.ToLower(typ), "cv") && temp == 0
			if err == nil && !off {
				z.Temp = inRange(&temp, -100_000, 250_000)
			}
			return func(s *Sample) { s.Zones = append(s.Zones, z) }, err
		})
	}
}

type trip struct {
	kind string
	temp int64
}

func readTrips(dev rootfs.FS, dir string) []trip {
	var out []trip
	for n := range 16 {
		at := dir + "/trip_point_" + strconv.Itoa(n)
		kind, err := readText(dev, at+"_type")
		if err != nil {
			break
		}
		if temp, err := readNumber(dev, at+"_temp"); err == nil && temp > 0 {
			out = append(out, trip{kind, temp})
		}
	}
	return out
}
