package modules_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/modules"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, modules.Emit) }
