package models_test

import (
	"testing"

	"github.com/yoctune/yoctune/emitters/emittest"
	"github.com/yoctune/yoctune/emitters/models"
)

func TestFilesOfBothLayers(t *testing.T) { emittest.Golden(t, models.Emit) }
