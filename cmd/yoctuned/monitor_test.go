package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/api"
	"github.com/yoctune/yoctune/runtime/device/rootfs"
)

// An event of the enforcer is shown before it is in the state file, which is written later.
func TestMonitorShowsEventsFromTheSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "yt") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, api.Socket)
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		request := make([]byte, api.MaxMessage)
		n, err := conn.Read(request)
		if err != nil {
			return
		}
		if r, err := api.Decode(request[:n]); err != nil || r.Type != api.Watch {
			return
		}
		_, _ = conn.Write(append(api.Answer{Type: api.Watching}.Encode(),
			api.Answer{Type: api.Happened, Event: &api.Event{Kind: "drift", Time: time.Now(), Path: "/proc/sys/vm/swappiness", Found: "77", By: &api.Process{PID: 812}}}.Encode()...))
	}()
	dev, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := driftReader{dev: dev, boot: "b", seen: time.Now()}
	d.watch()
	d.late = append(d.late, <-d.live)
	if got := d.events(); len(got) != 1 || got[0].Found != "77" || got[0].By.PID != 812 {
		t.Fatalf("%+v", got)
	}
	if got := d.newEvents(); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if got := d.newEvents(); len(got) != 0 {
		t.Fatalf("shown twice: %+v", got)
	}
}
