package tmpfiles_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/tmpfiles"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, tmpfiles.Emit) }
