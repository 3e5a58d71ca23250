// Command lease holds a lease until its standard input ends.
//
//	go run ./examples/lease
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/yoctune/yoctune/runtime/device/api"
)

func main() {
	socket := api.Socket
	if len(os.Args) > 1 {
		socket = os.Args[1]
	}
	if err := hold(socket); err != nil {
		fmt.Fprintln(os.Stderr, "lease:", err)
		os.Exit(1)
	}
}

func hold(socket string) error {
	c, err := api.Dial(socket)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // which ends the lease
	if _, err := c.Acquire("high-performance", time.Minute); err != nil {
		return err
	}
	fmt.Println("granted")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if !strings.HasPrefix(in.Text(), "r") {
			continue
		}
		if _, err := c.Renew(); err != nil {
			return err
		}
	}
	return in.Err()
}
