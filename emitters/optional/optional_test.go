package optional_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/optional"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, optional.Emit) }
