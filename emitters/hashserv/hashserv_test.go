package hashserv_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/hashserv"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, hashserv.Emit) }
