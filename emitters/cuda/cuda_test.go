package cuda_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/cuda"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, cuda.Emit) }
