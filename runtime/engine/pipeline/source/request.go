package source

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/yoctune/yoctune/runtime/engine/pipeline/frame"
	"github.com/yoctune/yoctune/runtime/engine/pipeline/request"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// requestSource fills frames with the rows of requests.
type requestSource struct {
	at   frame.Format
	port *request.Port
	stop chan struct{}
	once sync.Once
}

func openRequestSource(o opener) (Source, error) {
	if err := o.format.CheckSize(); err != nil {
		return nil, fmt.Errorf("%w: %w", registry.ErrPlan, err)
	}
	if o.Port == nil {
		return nil, fmt.Errorf("%w: it answers requests, which yoctuned-serve receives", registry.ErrPlan)
	}
	return &requestSource{at: o.format, port: o.Port, stop: make(chan struct{})}, nil
}

func (s *requestSource) Format() frame.Format       { return s.at }
func (s *requestSource) ReadFrame([]byte) error     { return errors.ErrUnsupported }
func (s *requestSource) Lend(Lending) (bool, error) { return false, nil }
func (s *requestSource) Interrupt()                 { s.once.Do(func() { close(s.stop) }) }

// Close fails the requests that still wait.
func (s *requestSource) Close() error {
	s.Interrupt()
	s.port.Close(request.ErrClosed)
	return nil
}

// Capture waits for a row.
func (s *requestSource) Capture(f *frame.Frame) (lost int, err error) {
	c, row, ok := s.port.Next(s.stop)
	if !ok {
		return 0, io.EOF
	}
	c.Fill(f, row)
	return 0, nil
}
