package assemble_test

import (
	"fmt"
	"testing"

	"github.com/yoctune/yoctune/emitters/assemble"
	"github.com/yoctune/yoctune/emitters/emittest"
)

func BenchmarkLayerOf100Targets(b *testing.B) {
	l := emittest.Vision(b)
	one := l.Targets[0]
	for i := range 99 {
		t := *one
		t.Name = fmt.Sprintf("line-%d", i)
		t.Machine = fmt.Sprintf("machine-%d", i)
		l.Targets = append(l.Targets, &t)
	}
	for b.Loop() {
		if _, err := assemble.Emit(l); err != nil {
			b.Fatal(err)
		}
	}
}
