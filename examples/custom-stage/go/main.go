// Command go computes the brightness of each frame: a stage of a yoctune pipeline as a program in Go.
//
//	go build -o brightness .
package main

import (
	"encoding/json"
	"errors"
	"log"
	"strconv"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/custom"
)

// Formats of frames with the luma plane first: nv12, i420 and grey.
var lumaFirst = map[uint32]bool{0: true, 1: true, 6: true}

func main() {
	log.SetFlags(0)
	if err := custom.Serve(open); err != nil {
		log.Fatal(err)
	}
}

func open(s *custom.Stage) (custom.Run, error) {
	if s.In.Kind != custom.Frame || !lumaFirst[s.In.Format] || s.Out.Kind != custom.Results {
		return nil, errors.New("it takes frames of nv12, i420 or grey, and gives results")
	}
	dark := 40
	if s.Options != "" {
		var err error
		if dark, err = strconv.Atoi(s.Options); err != nil {
			return nil, err
		}
	}
	luma := int(s.In.Width) * int(s.In.Height)
	return func(item custom.Item, out []byte) (int, error) {
		end := s.Scope("sum")
		sum := 0
		for _, v := range item.In[:luma] {
			sum += int(v)
		}
		end()
		mean := sum / luma
		s.Event("brightness", float64(mean)) // in traces
		s.Metric("brightness", float64(mean), false)
		if mean < dark {
			s.Metric("dark_frames", 1, true)
		}
		text, err := json.Marshal([]any{struct {
			Brightness int  `json:"brightness"`
			Dark       bool `json:"dark"`
		}{mean, mean < dark}})
		return copy(out, text), err
	}, nil
}
