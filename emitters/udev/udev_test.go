package udev_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/udev"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, udev.Emit) }
