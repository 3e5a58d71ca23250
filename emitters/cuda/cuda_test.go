package cuda_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/cuda"
	"github.com/yoctune/yoctune/emitters/emittest"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, cuda.Emit) }
