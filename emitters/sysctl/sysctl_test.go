package sysctl_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/sysctl"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, sysctl.Emit) }
