package zram_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/zram"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, zram.Emit) }
