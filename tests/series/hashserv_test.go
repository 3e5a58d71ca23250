package series

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/compiler"
)

// The release's own server accepts the command line of the unit and keeps its database in the
// unit's folder. The health check succeeds, and fails once the server has stopped.
func TestHashServerOfTheReleaseRunsAsItsUnit(t *testing.T) {
	checkouts := os.Getenv("YOCTUNE_CHECKOUTS")
	if checkouts == "" {
		t.Skip("set YOCTUNE_CHECKOUTS to a folder with RELEASE/bitbake")
	}
	for _, name := range []string{"kirkstone", "scarthgap", "wrynose", "master"} {
		t.Run(name, func(t *testing.T) {
			bitbake := filepath.Join(checkouts, name, "bitbake")
			if _, err := os.Stat(bitbake); err != nil {
				t.Skipf("%v: its hash server is not tried", err)
			}
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := free.Addr().String()
			if err := free.Close(); err != nil {
				t.Fatal(err)
			}
			layers := open(name, fmt.Sprintf("\tbuild: hashserve: server: {bitbake: %q, listen: %q}", bitbake, address)).Layers(compiler.Selection{})
			if len(layers) != 1 {
				t.Fatal("it does not build")
			}
			state := t.TempDir()
			command := func(ctx context.Context, unit string) *exec.Cmd {
				_, line, ok := strings.Cut(contentOf(layers[0].Files, "contrib/hashserv/"+unit), "\nExecStart=")
				words := strings.Fields(strings.SplitN(line, "\n", 2)[0])
				if !ok || len(words) == 0 {
					t.Fatalf("%s starts nothing", unit)
				}
				c := exec.CommandContext(ctx, words[0], words[1:]...)
				c.Dir = state
				return c
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			server := command(ctx, "yoctune-hashserv.service")
			var output strings.Builder
			server.Stdout, server.Stderr = &output, &output
			server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
			server.WaitDelay = 10 * time.Second
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			healthy := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // as the unit
				defer cancel()
				return command(ctx, "yoctune-hashserv-check.service").Run()
			}
			deadline := time.Now().Add(time.Minute)
			for err := healthy(); err != nil; err = healthy() {
				if time.Now().After(deadline) {
					stop()
					_ = server.Wait()
					t.Fatalf("no answer within a minute: %v\n%s", err, &output)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if _, err := os.Stat(filepath.Join(state, "hashserv.db")); err != nil {
				t.Errorf("the database is not in the unit's folder: %v", err)
			}
			stop()
			_ = server.Wait()
			if healthy() == nil {
				t.Error("a server that has stopped is called healthy")
			}
		})
	}
}
