package power_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/power"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, power.Emit) }
