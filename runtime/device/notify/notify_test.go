package notify_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/yoctune/yoctune/runtime/device/notify"
)

func env(pairs map[string]string) func(string) string {
	return func(k string) string { return pairs[k] }
}

func TestNotifyReachesSystemd(t *testing.T) {
	for name, address := range map[string]string{
		"a path":             filepath.Join(t.TempDir(), "notify"),
		"an abstract socket": "@yoctune-notify-" + filepath.Base(t.TempDir()) + time.Now().Format("150405.000000"),
	} {
		t.Run(name, func(t *testing.T) {
			manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = manager.Close() }()
			s, err := notify.Connect(env(map[string]string{"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"}), 7)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Watchdog != time.Minute {
				t.Errorf("watchdog %v", s.Watchdog)
			}
			if err := s.Send(notify.Ready, notify.Status("66 ok\nREADY=0")); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 256)
			n, err := manager.Read(buf)
			if err != nil || string(buf[:n]) != "READY=1\nSTATUS=66 ok READY=0" {
				t.Errorf("%q %v", buf[:n], err)
			}
		})
	}
}

func TestNotifyWithoutSystemd(t *testing.T) {
	s, err := notify.Connect(env(nil), 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(notify.Ready); err != nil || s.Watchdog != 0 {
		t.Errorf("%v %v", err, s.Watchdog)
	}
}

func TestWatchdogOfAnotherProcessIsIgnored(t *testing.T) {
	s, err := notify.Connect(env(map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"}), 7)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Watchdog != 0 {
		t.Error(s.Watchdog)
	}
}
