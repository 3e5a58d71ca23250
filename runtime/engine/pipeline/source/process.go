package source

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yoctune/yoctune/internal/backoff"
	"github.com/yoctune/yoctune/internal/tailbuf"
	registry "github.com/yoctune/yoctune/schema/pipeline"
)

// command is a child process that writes frames to its standard output.
type command struct {
	cmd    *exec.Cmd
	r      *os.File
	stderr tailbuf.Buffer
	once   sync.Once
	err    error
}

// stopTime is how long a child may take to exit after SIGTERM.
const stopTime = 2 * time.Second

// startCommand runs argv in a process group of its own. Everything it starts ends with it, and
// Ctrl-C in a terminal reaches only the pipeline.
func startCommand(argv []string) (*command, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("%w: missing command", registry.ErrPlan)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	c := &command{r: r, cmd: exec.Command(argv[0], argv[1:]...)}
	c.cmd.Stdout, c.cmd.Stderr = w, &c.stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.WaitDelay = stopTime
	if err := c.cmd.Start(); err != nil {
		r.Close()
		return nil, fmt.Errorf("start source: %w", err)
	}
	return c, nil
}

// Read returns io.EOF only after the child has exited with status 0.
func (c *command) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if errors.Is(err, io.EOF) {
		if werr := c.wait(); werr != nil {
			err = werr
		}
	}
	return n, err
}

// SetReadDeadline limits the wait for the child.
func (c *command) SetReadDeadline(t time.Time) error { return c.r.SetReadDeadline(t) }

func (c *command) wait() error {
	c.once.Do(func() {
		if err := c.cmd.Wait(); err != nil {
			c.err = c.withOutput(fmt.Errorf("%s: %w", c.cmd.Path, err))
		}
	})
	return c.err
}

// withOutput appends the child's last output to err. Programs print the address that they cannot
// read, so its user and password are removed.
func (c *command) withOutput(err error) error {
	output := c.stderr.String()
	for _, a := range c.cmd.Args {
		_, address, _ := strings.Cut(a, "://")
		address, _, _ = strings.Cut(address, "/")
		if at := strings.LastIndexByte(address, '@'); at > 0 {
			output = strings.ReplaceAll(output, address[:at], "…")
		}
	}
	if output == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, output)
}

// Close ends the child and everything in its process group. The exit status of a stopped child
// is ignored.
func (c *command) Close() error {
	ended := make(chan struct{})
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGTERM)
	go func() { _ = c.wait(); close(ended) }()
	if !backoff.WaitClosed(ended, stopTime) {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	return c.r.Close()
}
