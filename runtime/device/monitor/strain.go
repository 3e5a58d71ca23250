package monitor

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// strainInterval is the time between two readings of the sensors.
const strainInterval = time.Second

// Limits are the margins that a pipeline keeps.
type Limits struct {
	Headroom int64 // to the temperature at which the kernel throttles, in milli-degrees
	Power    int64 // of the whole module, in mW; 0 for no limit
}

// WatchStrain reads the sensors of a device until ctx is done. The function that it
// returns gives the latest [Sample.Strain]. It reads no sensor itself, so that a sensor
// that hangs delays no frame.
func WatchStrain(ctx context.Context, dev rootfs.FS, l Limits) func() string {
	var reason atomic.Value
	reason.Store("")
	hub := NewHub(New(dev).Take, strainInterval)
	go func() {
		for s := range hub.Watch(ctx) {
			reason.Store(s.Strain(l))
		}
	}()
	return func() string { return reason.Load().(string) }
}

// Strain returns why the device must do less: it throttles, it is hotter than the
// headroom allows, or it draws more than the allowed power. It returns "" when it need
// not; an unreadable sensor is not a reason.
func (s *Sample) Strain(l Limits) string {
	var throttled []string
	for _, c := range s.Throttled() {
		throttled = append(throttled, c.Name)
	}
	if len(throttled) > 0 {
		return "the device is held back by " + strings.Join(throttled, ", ")
	}
	for _, z := range s.Zones {
		if z.Placeholder || z.Temp == nil || z.Passive == nil || *z.Passive <= 0 {
			continue
		}
		if *z.Temp >= *z.Passive-l.Headroom {
			return fmt.Sprintf("%s has %.1f °C, the kernel slows down from %.1f °C on", z.Name, float64(*z.Temp)/1000, float64(*z.Passive)/1000)
		}
	}
	for _, r := range s.Rails {
		if l.Power > 0 && r.Power != nil && *r.Power > l.Power && feedsModule(r.Label) {
			return fmt.Sprintf("%s draws %.1f W, %.1f W are allowed", r.Label, float64(*r.Power)/1000, float64(l.Power)/1000)
		}
	}
	return ""
}

// feedsModule reports whether a rail supplies the whole module. The labels differ between
// the generations of Jetson modules.
func feedsModule(label string) bool {
	return label == "VDD_IN" || label == "POM_5V_IN" || label == "VIN"
}

// ModulePower returns the power of the rail that supplies the whole module in mW, nil if it is
// unknown.
func (s *Sample) ModulePower() *int64 {
	for _, r := range s.Rails {
		if feedsModule(r.Label) && r.Power != nil {
			return r.Power
		}
	}
	return nil
}
