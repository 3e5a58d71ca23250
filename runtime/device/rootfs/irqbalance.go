package rootfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A running irqbalance keeps the list of interrupts that it excludes in memory, and serves
// it on a socket (irqbalance.c, sock_handle):
//
//	/proc/irq/irqbalance/banned     "24 31", or "none"
//
// The node exists while irqbalance runs. The list includes the exclusions of its command
// line (--banirq).

// BannedIRQs is the name of that node.
const BannedIRQs = "/proc/irq/irqbalance/banned"

// noIRQs is the text of an empty list.
const noIRQs = "none"

const irqbalanceTimeout = 2 * time.Second

type irqbalanceNode struct{}

func (irqbalanceNode) read(r *Root) (string, error) {
	setup, err := callIRQBalance(r, "setup")
	if err != nil {
		return "", err
	}
	banned, ok := parseSetup(setup)
	if !ok {
		return "", fmt.Errorf("unexpected answer of irqbalance, %.60q: %w", setup, unix.EOPNOTSUPP)
	}
	return formatIRQs(banned), nil
}

func (irqbalanceNode) write(r *Root, text string) error {
	list := "NONE"
	if text != noIRQs {
		for f := range strings.FieldsSeq(text) {
			if n, err := strconv.ParseUint(f, 10, 31); err != nil || n == 0 {
				return unix.EINVAL // 0 terminates irqbalance's list
			}
		}
		list = text
	}
	_, err := callIRQBalance(r, "settings ban irqs "+list)
	return err
}

// parseSetup parses "SLEEP 10 IRQ 24 LOAD 0 DIFF 0 CLASS 0 … BANNED 00000000".
func parseSetup(text string) (banned []int, ok bool) {
	f := strings.Fields(strings.TrimRight(text, "\x00"))
	if len(f) < 2 || f[0] != "SLEEP" {
		return nil, false
	}
	for i := 2; i+1 < len(f); i += 2 {
		if f[i] != "IRQ" {
			continue
		}
		n, err := strconv.ParseUint(f[i+1], 10, 31)
		if err != nil {
			return nil, false
		}
		banned = append(banned, int(n))
	}
	slices.Sort(banned)
	return slices.Compact(banned), true
}

// AddBannedIRQs returns the text of a list with interrupts added to it. numbers are names of
// directories below /proc/irq.
func AddBannedIRQs(list string, numbers ...string) string {
	var all []int
	for _, f := range append(strings.Fields(list), numbers...) {
		if n, err := strconv.ParseUint(f, 10, 31); err == nil && n > 0 {
			all = append(all, int(n))
		}
	}
	slices.Sort(all)
	return formatIRQs(slices.Compact(all))
}

func formatIRQs(numbers []int) string {
	if len(numbers) == 0 {
		return noIRQs
	}
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}

// irqbalancePID returns the PID of the running irqbalance.
func irqbalancePID(r *Root) (string, error) {
	processes, err := RunningProcesses(r)
	if err != nil {
		return "", err
	}
	for _, p := range processes {
		if p.Name == "irqbalance" {
			return p.PID, nil
		}
	}
	return "", fs.ErrNotExist
}

// callIRQBalance sends a command and returns the whole answer. irqbalance accepts commands
// from root only and requires credentials with the message. Its socket is a file if
// /run/irqbalance exists, else an abstract name.
func callIRQBalance(r *Root, command string) (string, error) {
	pid, err := irqbalancePID(r)
	if err != nil {
		return "", err
	}
	conn, err := net.DialTimeout("unix", "/run/irqbalance/irqbalance"+pid+".sock", irqbalanceTimeout)
	if err != nil {
		var err2 error
		if conn, err2 = net.DialTimeout("unix", "@irqbalance"+pid+".sock", irqbalanceTimeout); err2 != nil {
			return "", fmt.Errorf("irqbalance has no socket (%w): %w", errors.Join(err, err2), fs.ErrNotExist)
		}
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(irqbalanceTimeout)); err != nil {
		return "", err
	}
	who := unix.UnixCredentials(&unix.Ucred{Pid: int32(os.Getpid()), Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())})
	// The zero byte terminates the numbers.
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix(append([]byte(command), 0), who, nil); err != nil {
		return "", err
	}
	var answer bytes.Buffer
	_, err = io.CopyN(&answer, conn, 1<<16)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return answer.String(), nil
}
