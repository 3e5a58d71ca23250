package onnxruntime_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/onnxruntime"
)

func TestRecipeOfBothLayers(t *testing.T) { emittest.Golden(t, onnxruntime.Emit) }
