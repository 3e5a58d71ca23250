package yoctuned_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/yoctuned"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, yoctuned.Emit) }
