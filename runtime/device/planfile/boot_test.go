package planfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/runtime/device/devicetest"
	"github.com/yoctune/yoctune/runtime/device/planfile"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
	"github.com/yoctune/yoctune/schema/plan"
)

// boots begins a plan at a number of boots, each of which ends before the plan is proven.
func boots(t *testing.T, dev rootfs.State, p *plan.Plan, from, count int) {
	t.Helper()
	for n := range count {
		if err := planfile.BeginBoot(dev, fmt.Sprint("boot-", from+n), p); err != nil {
			t.Fatalf("boot %d: %v", from+n, err)
		}
	}
}

func TestPlanThatNeverLastsIsGivenUp(t *testing.T) {
	dev, _ := tree(t)
	bad, next := &plan.Plan{Digest: "sha256:a", Serial: 8}, &plan.Plan{Digest: "sha256:b", Serial: 9}
	boots(t, dev, bad, 1, planfile.MaxBoots)
	// A restart of the service does not count as a boot.
	if err := planfile.BeginBoot(dev, "boot-3", bad); err != nil {
		t.Errorf("restarted: %v", err)
	}
	if err := planfile.BeginBoot(dev, "boot-4", bad); !errors.Is(err, planfile.ErrUnproven) {
		t.Errorf("at its fourth boot: %v", err)
	}
	boots(t, dev, next, 5, 1)
	if b, err := planfile.ReadBoot(dev); err != nil || b.Digest != next.Digest || len(b.Boots) != 1 {
		t.Errorf("%+v %v", b, err)
	}
}

func TestOldPlanIsUsedUntilTheNewOneIsProven(t *testing.T) {
	dev, _ := tree(t)
	old, updated := &plan.Plan{Digest: "sha256:a", Serial: 1}, &plan.Plan{Digest: "sha256:b", Serial: 2}
	if err := planfile.ProveBoot(dev, old); err != nil {
		t.Fatal(err)
	}
	// The updated slot does not boot, and the boot loader selects the old one.
	boots(t, dev, updated, 1, 1)
	if err := planfile.CheckSerial(dev, old); err != nil {
		t.Errorf("the slot that worked: %v", err)
	}
	if err := planfile.ProveBoot(dev, updated); err != nil {
		t.Fatal(err)
	}
	if err := planfile.CheckSerial(dev, old); !errors.Is(err, planfile.ErrSerial) {
		t.Errorf("replayed: %v", err)
	}
}

func TestProvenPlanWritesNoRecord(t *testing.T) {
	dev, _ := tree(t)
	p := &plan.Plan{Digest: "sha256:a", Serial: 1}
	if err := planfile.ProveBoot(dev, p); err != nil {
		t.Fatal(err)
	}
	flash := devicetest.NewKernel(dev)
	boots(t, flash, p, 1, 20)
	if err := planfile.ProveBoot(flash, p); err != nil || flash.Clock != 0 {
		t.Errorf("%d writes to the flash, %v", flash.Clock, err)
	}
}

func TestCleanShutdownIsNotAFailedBoot(t *testing.T) {
	dev, _ := tree(t)
	p := &plan.Plan{Digest: "sha256:a", Serial: 1}
	for n := range 10 {
		boots(t, dev, p, n, 1)
		if err := planfile.EndBoot(dev, fmt.Sprint("boot-", n), p); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := planfile.ReadBoot(dev); err != nil || len(b.Boots) != 0 || b.Proven {
		t.Errorf("%+v %v", b, err)
	}
}

func TestDamagedBootRecordIsReplaced(t *testing.T) {
	dev, dir := tree(t)
	p := &plan.Plan{Digest: "sha256:a", Serial: 1}
	writePlan(t, dir+planfile.BootFile, []byte("rubbish"))
	if _, err := planfile.ReadBoot(dev); err == nil {
		t.Error("a damaged record is accepted")
	}
	if err := planfile.BeginBoot(dev, "boot-1", p); err == nil || !strings.Contains(err.Error(), "the boots are counted anew") {
		t.Errorf("the loss of the record is not reported: %v", err)
	}
	if b, err := planfile.ReadBoot(dev); err != nil || len(b.Boots) != 1 {
		t.Errorf("%+v %v", b, err)
	}
}
