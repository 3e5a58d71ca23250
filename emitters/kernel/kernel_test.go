package kernel_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/kernel"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, kernel.Emit) }
