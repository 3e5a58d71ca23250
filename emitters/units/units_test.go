package units_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/units"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, units.Emit) }
