package packagegroup_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/packagegroup"
	"github.com/yoctune/yoctune/schema/plan"
)

func TestFilesOfBothLayers(t *testing.T) {
	emittest.Golden(t, func(l *plan.Layer) ([]emitters.File, error) {
		files, err := assemble.Emit(l)
		if err != nil {
			return nil, err
		}
		return packagegroup.Emit(l, files)
	})
}
