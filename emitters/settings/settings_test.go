package settings_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/settings"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, settings.Emit) }
