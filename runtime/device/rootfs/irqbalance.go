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

// The interrupts that a running irqbalance leaves alone are a list that it keeps in
// memory and takes over a socket (irqbalance.c, sock_handle):
//
//	/proc/irq/irqbalance/banned     "24 31", or "none"
//
// It is there while one irqbalance runs. What is on its command line (--banirq)
// irqbalance has in the same list.

// BannedIRQs is that node.
const BannedIRQs = "/proc/irq/irqbalance/banned"

// noIRQs is the text of an empty list.
const noIRQs = "none"

const irqbalanceTimeout = 2 * time.Second

type irqbalanceNode struct{}

func (irqbalanceNode) read(r *Root) (string, error) {
	setup, err := askIRQBalance(r, "setup")
	if err != nil {
		return "", err
	}
	banned, ok := parseSetup(setup)
	if !ok {
		return "", fmt.Errorf("irqbalance says %.60q: %w", setup, unix.EOPNOTSUPP)
	}
	return textOfIRQs(banned), nil
}

func (irqbalanceNode) write(r *Root, text string) error {
	list := "NONE"
	if text != noIRQs {
		for f := range strings.FieldsSeq(text) {
			if n, err := strconv.ParseUint(f, 10, 31); err != nil || n == 0 {
				return unix.EINVAL // 0 ends irqbalance's own list
			}
		}
		list = text
	}
	_, err := askIRQBalance(r, "settings ban irqs "+list)
	return err
}

// parseSetup reads "SLEEP 10 IRQ 24 LOAD 0 DIFF 0 CLASS 0 … BANNED 00000000".
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

// BanIRQs is the text of a list with interrupts added to it; their numbers are
// those of the nodes below /proc/irq.
func BanIRQs(list string, numbers ...string) string {
	var all []int
	for _, f := range append(strings.Fields(list), numbers...) {
		if n, err := strconv.ParseUint(f, 10, 31); err == nil && n > 0 {
			all = append(all, int(n))
		}
	}
	slices.Sort(all)
	return textOfIRQs(slices.Compact(all))
}

func textOfIRQs(numbers []int) string {
	if len(numbers) == 0 {
		return noIRQs
	}
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}

// irqbalancePID finds the one that runs.
func irqbalancePID(r *Root) (string, error) {
	names, err := r.List("/proc")
	if err != nil {
		return "", err
	}
	for _, pid := range names {
		if strings.Trim(pid, "0123456789") != "" {
			continue
		}
		if c, err := r.Read("/proc/" + pid + "/comm"); err == nil && strings.TrimSpace(c.Text) == "irqbalance" {
			return pid, nil
		}
	}
	return "", fs.ErrNotExist
}

// askIRQBalance sends a command and returns what is answered until irqbalance hangs
// up; it takes them from root only, who has to show that. Its socket is a file where it has /run/irqbalance, else a name without one.
func askIRQBalance(r *Root, command string) (string, error) {
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
	// The zero ends the numbers that irqbalance reads.
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
