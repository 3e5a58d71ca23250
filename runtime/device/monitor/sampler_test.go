package monitor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// board is a synthetic device and its sampler.
type board struct {
	t   *testing.T
	dir string
	dev *rootfs.Root
	now time.Duration
}

func newBoard(t *testing.T, name string) *board {
	t.Helper()
	dir := t.TempDir()
	if err := devicetest.Build(dir, name); err != nil {
		t.Fatal(err)
	}
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &board{t: t, dir: dir, dev: dev, now: time.Hour}
}

func (b *board) write(name, text string) {
	b.t.Helper()
	host := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(host, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *board) remove(name string) {
	b.t.Helper()
	if err := os.RemoveAll(filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *board) sampler(dev rootfs.FS) *monitor.Sampler {
	s := monitor.New(dev)
	s.Fake(func() time.Duration { return b.now }, time.Minute)
	return s
}

func show(v *int64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func TestSampleOfAnOrinNano(t *testing.T) {
	b := newBoard(t, "orin-nano-8gb")
	s := b.sampler(b.dev)
	s.Take()
	b.now += time.Second
	b.write("/proc/stat", "cpu  0 0 0 0\ncpu0 150 0 50 9850 20 0 5\ncpu1 100 0 50 9900 20 0 5\n")
	b.write("/proc/vmstat", "pgmajfault 1207\n")
	got := s.Take()
	if got.PowerMode == nil || *got.PowerMode != "25W" {
		t.Errorf("power mode %v", got.PowerMode)
	}
	if len(got.CPUs) != 6 || show(got.CPUs[0].Load) != "500" || show(got.CPUs[1].Load) != "0" || show(got.CPUs[5].Load) != "-" ||
		show(got.CPUs[5].Freq) != "729600000" || show(got.CPUs[0].Max) != "1344000000" {
		t.Errorf("cpus %+v", got.CPUs)
	}
	if len(got.GPUs) != 1 || show(got.GPUs[0].Load) != "125" || show(got.GPUs[0].Freq) != "306000000" {
		t.Errorf("gpus %+v", got.GPUs)
	}
	if got.EMC == nil || show(got.EMC.Load) != "20" || show(got.EMC.Freq) != "2133000000" {
		t.Errorf("memory clock %+v", got.EMC)
	}
	if len(got.Rails) != 3 || got.Rails[0].Label != "VDD_IN" || show(got.Rails[0].Power) != "4636" {
		t.Errorf("rails %+v", got.Rails)
	}
	if hot := got.Hottest(); len(got.Zones) != 9 || hot == nil || hot.Name != "cpu-thermal" || show(hot.Critical) != "104500" {
		t.Errorf("zones %+v", got.Zones)
	}
	if len(got.Fans) != 2 || show(got.Fans[0].PWM) != "88" || show(got.Fans[1].RPM) != "1210" {
		t.Errorf("fans %+v", got.Fans)
	}
	m := got.Memory
	if show(m.NVMap) != "268435456" || show(m.CMAFree) != "134217728" || show(m.SwapTotal) != "0" || m.LargestN == nil || *m.LargestN != 100 {
		t.Errorf("memory %+v", m)
	}
	if show(got.Faults) != "7" || got.Pressure.CPU == nil || *got.Pressure.CPU != 0.5 || len(got.Alarms) != 3 || len(got.Stale) != 0 {
		t.Errorf("faults %s pressure %+v alarms %+v stale %+v", show(got.Faults), got.Pressure, got.Alarms, got.Stale)
	}
}

func TestMissingValuesAreNull(t *testing.T) {
	b := newBoard(t, "orin-nano-8gb")
	for _, gone := range []string{
		"/sys/kernel/debug", "/proc/pressure", "/proc/stat", "/proc/buddyinfo", "/proc/vmstat", "/var/lib/nvpmodel", "/etc/nvpmodel.conf",
		"/sys/class/hwmon/hwmon0/curr1_input", "/sys/devices/platform/bus@0/17000000.gpu/load",
	} {
		b.remove(gone)
	}
	b.write("/proc/meminfo", "MemTotal: 100 kB\n")
	b.write("/sys/class/thermal/thermal_zone1/temp", "-256000\n")
	b.write("/sys/class/hwmon/hwmon1/pwm1", "300\n")
	b.write("/sys/class/hwmon/hwmon2/rpm", "Invalid argument\n")
	s := b.sampler(b.dev)
	s.Take()
	b.now += time.Second
	text, err := json.Marshal(s.Take())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"power_mode":null`, `"emc":null`, `"load_permille":null`, `"swap_total":null`, `"nvmap":null`, `"largest_free":null`,
		`"major_faults_per_second":null`, `"cpu_some_avg10":null`, `{"name":"gpu-thermal","temp_mc":null`, `{"name":"cv0-thermal","temp_mc":null`,
		`{"name":"pwmfan","pwm":null,"rpm":null}`, `{"name":"tachometer","pwm":null,"rpm":null}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestOfflineCoreHasNoLoadOrClock(t *testing.T) {
	b := newBoard(t, "orin-nano-8gb")
	b.write("/sys/devices/system/cpu/online", "0-3\n")
	b.write("/proc/stat", "cpu 0 0 0 0\ncpu0 1 0 0 1\n")
	for _, c := range b.sampler(b.dev).Take().CPUs {
		if c.Online != (c.Number < 4) || c.Number >= 4 && (c.Load != nil || c.Freq != nil) {
			t.Errorf("%+v", c)
		}
	}
}

// hanging is a device with a node that does not answer until it is released.
type hanging struct {
	rootfs.FS
	node  string
	asked chan bool
	let   chan bool
}

func (h *hanging) Read(name string) (rootfs.Content, error) {
	if name == h.node {
		h.asked <- true
		<-h.let
	}
	return h.FS.Read(name)
}

// The clock is that of the synctest bubble, which advances only when all other sensors have
// answered.
func TestHangingSensorIsStale(t *testing.T) {
	b := newBoard(t, "orin-nano-8gb")
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{FS: b.dev, node: "/sys/class/thermal/thermal_zone0/temp", asked: make(chan bool, 100), let: make(chan bool)}
		s := monitor.New(h)
		const patience = 20 * time.Millisecond
		s.Fake(func() time.Duration { return b.now }, patience)
		for n := range 4 {
			begin := time.Now()
			got := s.Take()
			waited := time.Since(begin)
			if n == 0 && waited != patience || n > 0 && waited > 0 {
				t.Errorf("sample %d waited %v", n, waited)
			}
			var zone *monitor.Zone
			for i := range got.Zones {
				if got.Zones[i].Name == "cpu-thermal" {
					zone = &got.Zones[i]
				}
			}
			if zone == nil || zone.Temp != nil {
				t.Errorf("the zone that hangs is %+v", zone)
			}
			if len(got.Stale) != 1 || got.Stale[0].Sensor != "temperature cpu-thermal" || got.Stale[0].For != int64(n)*1000 {
				t.Errorf("stale %+v", got.Stale)
			}
			b.now += time.Second
		}
		if n := len(h.asked); n != 1 {
			t.Errorf("it was read %d times while it hung", n)
		}
		close(h.let)
		synctest.Wait()
		for _, z := range s.Take().Zones {
			if z.Name == "cpu-thermal" && z.Temp == nil {
				t.Error("the sensor is not read again")
			}
		}
	})
}

func TestNewDevicesAreFound(t *testing.T) {
	b := newBoard(t, "orin-nano-8gb")
	b.remove("/sys/class/thermal/thermal_zone0/temp") // what makes the sampler look again
	s := b.sampler(b.dev)
	s.Take()
	b.write("/sys/class/hwmon/hwmon9/name", "ina238\n")
	b.write("/sys/class/hwmon/hwmon9/power1_input", "19780000\n")
	b.now += time.Minute
	s.Take()
	for _, r := range s.Take().Rails {
		if r.Label == "ina238" && show(r.Power) == "19780" {
			return
		}
	}
	t.Error("the power monitor that was added later is missing")
}

func TestRailsOfR32AreIIODevices(t *testing.T) {
	b := newBoard(t, "orin-nano-8gb")
	const dir = "/sys/bus/iio/devices/iio:device0/"
	b.write(dir+"name", "ina3221x\n")
	b.write(dir+"rail_name_0", "POM_5V_IN\n")
	b.write(dir+"in_power0_input", "2003\n")
	b.write(dir+"rail_name_1", "NC\n")
	got := b.sampler(b.dev).Take()
	last := got.Rails[len(got.Rails)-1]
	if last.Label != "POM_5V_IN" || show(last.Power) != "2003" || last.Voltage != nil {
		t.Errorf("%+v", got.Rails)
	}
}

func TestFanIsNotThrottling(t *testing.T) {
	b := newBoard(t, "agx-orin-64gb")
	b.write("/sys/class/thermal/cooling_device0/cur_state", "3\n")
	s := b.sampler(b.dev)
	if hot := s.Take().Throttled(); len(hot) != 0 {
		t.Errorf("%+v", hot)
	}
	b.write("/sys/class/thermal/cooling_device4/cur_state", "2\n")
	if hot := s.Take().Throttled(); len(hot) != 1 || hot[0].Name != "devfreq-17000000.gpu" {
		t.Errorf("%+v", hot)
	}
}

func TestSampleOfThisMachine(t *testing.T) {
	dev, err := rootfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	got := monitor.New(dev).Take()
	if len(got.CPUs) == 0 || got.Memory.Total == nil || got.Monotonic <= 0 {
		t.Errorf("%+v", got)
	}
}
