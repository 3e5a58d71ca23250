package layerconf_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/layerconf"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, layerconf.Emit) }
