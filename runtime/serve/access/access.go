// Package access holds what servers on the device share about who may use them: sockets of a group, and files
// that the service manager hands over.
package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/yoctune/yoctune/internal/socket"
	"github.com/yoctune/yoctune/schema/plan"
)

// Group is the group whose members may use the unix sockets of pipelines and of the cluster.
const Group = "yoctune"

// Listen listens on path for root and the members of [Group]. note is set where only this user and root may
// connect.
func Listen(ctx context.Context, path string) (l *net.UnixListener, note, err error) {
	if l, err = socket.Listen(ctx, path, 0o660); err != nil {
		return nil, nil, err
	}
	g, err := user.LookupGroup(Group)
	if err == nil {
		var id int
		if id, err = strconv.Atoi(g.Gid); err == nil {
			err = os.Chown(path, -1, id)
		}
	}
	if err != nil {
		note = fmt.Errorf("only this user and root may connect to %s: group %s: %w", path, Group, err)
	}
	return l, note, nil
}

// Credential returns the file that the service manager hands over under a name, or path if it hands over none.
// The user of a service need not be able to read path.
func Credential(name, path string) string {
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		handed := filepath.Join(dir, name)
		if st, err := os.Stat(handed); err == nil && st.Mode().IsRegular() {
			return handed
		}
	}
	return path
}

// ClientTLS reads the certificates of a client; nil: it has none, and trusts the authorities of the system.
func ClientTLS(t *plan.ClientTLS) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t == nil {
		return c, nil
	}
	if t.CA != "" {
		text, err := os.ReadFile(Credential("ca", t.CA))
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls: %s has no certificate in PEM", t.CA)
		}
	}
	if t.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(Credential("certificate", t.Certificate), Credential("key", t.Key))
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
