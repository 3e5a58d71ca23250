package kas_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/kas"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, kas.Emit) }
