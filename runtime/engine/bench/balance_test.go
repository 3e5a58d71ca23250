package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/yoctune/yoctune/runtime/engine/core"
)

func virtual(t *testing.T, faults ...string) []*core.Device {
	t.Helper()
	var all []*core.Device
	for i, f := range faults {
		d, err := core.Open(core.Options{Backend: core.CPU, Devices: len(faults), Index: i, Faults: f})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, d)
	}
	return all
}

func TestASlowDeviceGetsFewerItems(t *testing.T) {
	const n = 60
	shares, err := Balance(context.Background(), virtual(t, "", "slow:x200"), n)
	if err != nil {
		t.Fatal(err)
	}
	if shares[0].Items+shares[1].Items != n || shares[0].Items <= shares[1].Items {
		t.Errorf("%+v", shares)
	}
}

func TestAnotherDeviceRepeatsTheItemOfALostDevice(t *testing.T) {
	const n = 40
	shares, err := Balance(context.Background(), virtual(t, "", "launch:fault@n=1", ""), n)
	if err != nil {
		t.Fatal(err)
	}
	if !shares[1].Lost || shares[1].Rate != 0 || shares[0].Items+shares[1].Items+shares[2].Items != n {
		t.Errorf("%+v", shares)
	}
	if _, err := Balance(context.Background(), virtual(t, "launch:fault@n=2", "launch:fault@n=1"), n); !errors.Is(err, core.ErrDeviceLost) {
		t.Errorf("all are lost: %v", err)
	}
}
