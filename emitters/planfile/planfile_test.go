package planfile_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/planfile"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, planfile.Emit) }
