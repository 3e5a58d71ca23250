package packagegroup_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/packagegroup"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, packagegroup.Emit) }
