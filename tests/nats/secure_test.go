package nats

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/yoctune/yoctune/schema/plan"
)

// nkey writes the seed of a new user, and returns its public key.
func nkey(t *testing.T, path string) string {
	t.Helper()
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

// A cluster that asks for certificates and keys takes the results of a device that has them. Whatever is wrong with
// them, status says so, results wait, and they arrive once it is put right.
func TestOnlyADeviceWithItsKeysDelivers(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	a.issue("hub", time.Now().Add(time.Hour))
	a.issue("device", time.Now().Add(time.Hour))
	a.issue("expired", time.Now().Add(-time.Hour))
	other.issue("device", time.Now().Add(time.Hour))
	known, unknown := a.path("known.nk"), a.path("unknown.nk")
	public := nkey(t, known)
	nkey(t, unknown)
	address := freePort(t)
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	config := a.path("hub.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, `tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }
authorization { users: [ {nkey: %s}, {user: reader, password: reader} ] }
`, a.path("hub.crt"), a.path("hub.key"), a.path("ca.crt"), public), 0o600); err != nil {
		t.Fatal(err)
	}
	hub(t, bin, t.TempDir(), address, "-c", config)
	for _, c := range []struct {
		name, credentials string
		tls               *plan.ClientTLS
		why               string // in the status; "": it delivers
	}{
		{"an unknown key", unknown, a.identity("device"), "uthorization"},
		{"a certificate that has expired", known, a.identity("expired"), "the device's certificate expired at "},
		{"a certificate of another authority", known, &plan.ClientTLS{CA: a.path("ca.crt"), Certificate: other.path("device.crt"), Key: other.path("device.key")}, "certificate"},
		{"a hub of another authority", known, other.identity("device"), "x509"},
		{"the right keys", known, a.identity("device"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDevice(t, func(p *plan.Plan, _ *plan.Delivery) {
				p.Cluster.URL, p.Cluster.TLS, p.Cluster.Credentials = "tls://"+address, c.tls, c.credentials
			})
			server := d.cluster()
			p := d.pipeline("--frames", "500")
			<-p.ended
			if c.why != "" {
				d.until("status has the reason", server, func() bool {
					s, ok := d.status()
					return ok && s.Exit == 3 && s.Remote.State == "disconnected" && strings.Contains(s.Remote.Why, c.why) && s.Deliveries[0].Waiting == 500
				})
				return
			}
			if out, err := exec.Command(filepath.Join(d.bin, "yoctuned-serve"), "cluster", "drain", "--root", d.root, "--timeout", "60s").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s\n%s", err, out, server.log)
			}
			found := read(t, "tls://reader:reader@"+address, a.path("ca.crt"), a.path("device.crt"), a.path("device.key"))
			found.whole(t)
			if found.Results != 500 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// The server on the device admits clients with a certificate of the authority, and no others.
func TestTheServerOnTheDeviceAsksForCertificates(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	a.issue("server", time.Now().Add(time.Hour))
	a.issue("reader", time.Now().Add(time.Hour))
	other.issue("reader", time.Now().Add(time.Hour))
	address := freePort(t)
	d := newDevice(t, func(p *plan.Plan, _ *plan.Delivery) {
		p.Cluster.Embedded, p.Cluster.Listen, p.Cluster.TLS = true, address, a.identity("server")
	})
	d.cluster()
	p := d.pipeline("--frames", "500")
	<-p.ended
	found := read(t, "tls://"+address, a.path("ca.crt"), a.path("reader.crt"), a.path("reader.key"))
	found.whole(t)
	if found.Results != 500 {
		t.Errorf("%+v\n%s", found, p.log)
	}
	python, _ := filepath.Abs("../../build/nats-venv/bin/python")
	for _, more := range [][]string{nil, {a.path("ca.crt"), other.path("reader.crt"), other.path("reader.key")}} {
		cmd := exec.Command("timeout", append([]string{"20", python, "reader.py", "tls://" + address, "door"}, more...)...)
		if out, err := cmd.Output(); err == nil {
			t.Errorf("with %v: %s", more, out)
		}
	}
}
