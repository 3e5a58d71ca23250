package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/lease"
	"github.com/yoctune/yoctune/runtime/device/monitor"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// strainInterval is how often the device is asked whether it wants less.
const strainInterval = time.Second

// watchStrain tells why the device wants a pipeline to do less, "" when it does not.
// Sensors are read beside the pipeline: one that hangs delays no frame.
func watchStrain(ctx context.Context, dev rootfs.FS, d *plan.PipelineDegrade) func() string {
	if d == nil {
		return nil
	}
	var why atomic.Value
	why.Store("")
	hub := monitor.NewHub(monitor.New(dev).Take, strainInterval)
	go func() {
		for s := range hub.Watch(ctx) {
			why.Store(strain(s, d.Headroom, d.Power))
		}
	}()
	return func() string { return why.Load().(string) }
}

// total tells the rails that feed a whole module, by the modules' own names.
func total(label string) bool { return label == "VDD_IN" || label == "POM_5V_IN" || label == "VIN" }

// strain judges one sample; what is not known is no strain. Headroom is in
// milli-degrees, power in mW, 0 for no limit.
func strain(s *monitor.Sample, headroom, power int64) string {
	var slowed []string
	for _, c := range s.Throttled() {
		slowed = append(slowed, c.Name)
	}
	if len(slowed) > 0 {
		return "the device is held back by " + strings.Join(slowed, ", ")
	}
	for _, z := range s.Zones {
		if z.Placeholder || z.Temp == nil || z.Passive == nil || *z.Passive <= 0 {
			continue
		}
		if *z.Temp >= *z.Passive-headroom {
			return fmt.Sprintf("%s has %.1f °C, the kernel slows down from %.1f °C on", z.Name, float64(*z.Temp)/1000, float64(*z.Passive)/1000)
		}
	}
	for _, r := range s.Rails {
		if power > 0 && r.Power != nil && *r.Power > power && total(r.Label) {
			return fmt.Sprintf("%s draws %.1f W, %.1f W are allowed", r.Label, float64(*r.Power)/1000, float64(power)/1000)
		}
	}
	return ""
}

// holdLease asks yoctuned for more speed and keeps it until release is called or this
// process ends. Without a yoctuned the pipeline runs at the speed there is.
func holdLease(root string, note func(error)) (release func()) {
	c, err := api.Dial(filepath.Join(root, api.Socket))
	if err != nil {
		note(fmt.Errorf("no lease: %w", err))
		return func() {}
	}
	granted, err := c.Acquire(lease.Profile, 0)
	if err != nil {
		note(fmt.Errorf("no lease: %w", err))
		_ = c.Close()
		return func() {}
	}
	done := make(chan struct{})
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		t := time.NewTicker(max(time.Duration(granted.TTL)*time.Millisecond/3, time.Second))
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
			}
			if _, err := c.Renew(); err != nil {
				note(fmt.Errorf("the lease is lost, the pipeline goes on: %w", err))
				return
			}
		}
	}()
	return func() {
		close(done)
		<-renewed
		_ = c.Close() // the lease ends with it
	}
}
