package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/yoctune/yoctune/runtime/serve/access"
	registry "github.com/yoctune/yoctune/schema/pipeline"
	"github.com/yoctune/yoctune/schema/plan"
)

// Socket is the unix socket of the server on the device, and Dir the folder of its streams.
const (
	Socket = "/run/yoctune-cluster/nats.sock"
	Dir    = "/var/lib/yoctune-cluster"
)

// credentialUser is the name under which the service manager hands over the credentials of a user.
const credentialUser = "user"

// ErrStore is wrapped by the error of a server whose streams cannot be written until it starts again.
var ErrStore = errors.New("the store of the cluster failed")

// Options describe the server on the device.
type Options struct {
	Plan   *plan.Plan
	Device string // identity
	Socket string
	Dir    string // of the streams
	Log    func(format string, args ...any)
}

// Server is the NATS server on the device.
type Server struct {
	o     Options
	nats  *server.Server
	local net.Listener
}

// Start starts the server. It listens on a unix socket, and on TCP where the plan has an address.
func Start(ctx context.Context, o Options) (*Server, error) {
	c := o.Plan.Cluster
	if c == nil {
		return nil, errors.New("the plan has no cluster")
	}
	if faults := registry.CheckCluster(o.Plan); len(faults) > 0 {
		return nil, fmt.Errorf("%w: %w", registry.ErrPlan, faults[0])
	}
	options := &server.Options{
		ServerName: "device-" + o.Device, NoSigs: true, DontListen: true,
		JetStream: true, StoreDir: o.Dir, JetStreamMaxStore: storeLimit(c), JetStreamMaxMemory: 1 << 20,
		SyncAlways: c.Store.Sync == 0, SyncInterval: time.Duration(c.Store.Sync),
		MaxPending: 16 << 20, DisableJetStreamBanner: true,
	}
	if c.Embedded {
		if options.JetStreamDomain = c.Domain; options.JetStreamDomain == "" {
			options.JetStreamDomain = c.Name
		}
	}
	if c.Listen != "" {
		at, err := netip.ParseAddrPort(c.Listen)
		if err != nil {
			return nil, err
		}
		options.DontListen, options.Host, options.Port = false, at.Addr().String(), int(at.Port())
		if options.Port == 0 {
			options.Port = server.RANDOM_PORT
		}
		if c.TLS != nil {
			if options.TLSConfig, err = serverTLS(c.TLS); err != nil {
				return nil, err
			}
			options.TLS, options.TLSVerify, options.TLSTimeout = true, true, 5
		}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	n, err := server.NewServer(options)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, nats: n}
	n.SetLoggerV2(logger{o.Log}, false, false, false)
	n.Start()
	if !n.ReadyForConnections(20*time.Second) || !n.JetStreamEnabled() {
		s.Stop()
		return nil, fmt.Errorf("%w: JetStream did not start in %s", ErrStore, o.Dir)
	}
	if err := os.MkdirAll(filepath.Dir(o.Socket), 0o755); err != nil {
		s.Stop()
		return nil, err
	}
	local, note, err := access.Listen(ctx, o.Socket)
	if err != nil {
		s.Stop()
		return nil, err
	}
	if note != nil {
		o.Log("%v", note)
	}
	s.local = local
	go s.accept()
	return s, nil
}

// storeLimit leaves room for the forwarder's own state.
func storeLimit(c *plan.Cluster) int64 { return c.Store.Size + positionsSize }

// Address is where other clients connect, "" for none.
func (s *Server) Address() string {
	if s.o.Plan.Cluster.Listen == "" {
		return ""
	}
	return s.nats.Addr().String()
}

// accept connects clients of the unix socket to the server, until it is stopped.
func (s *Server) accept() {
	for {
		c, err := s.local.Accept()
		if err != nil {
			return
		}
		inner, err := s.nats.InProcessConn()
		if err != nil {
			_ = c.Close()
			continue
		}
		join := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			_ = to.Close()
			_ = from.Close()
		}
		go join(inner, c)
		go join(c, inner)
	}
}

// Connect returns a connection inside the process.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	return nats.Connect("", nats.InProcessServer(s.nats), nats.Name(name), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1))
}

// Watch returns when ctx ends, or with the reason why the server must start again: a stream that met an error of
// its disk takes nothing more until then.
func (s *Server) Watch(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for sick := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !s.nats.JetStreamEnabled() {
			return fmt.Errorf("%w: JetStream was switched off, as after an error of the disk", ErrStore)
		}
		h := s.nats.Healthz(&server.HealthzOptions{})
		if h.Error == "" {
			sick = 0
		} else if sick++; sick == 3 {
			return fmt.Errorf("%w: %s", ErrStore, h.Error)
		}
	}
}

// Stop writes what is open to the disk and ends the server.
func (s *Server) Stop() {
	if s.local != nil {
		_ = s.local.Close()
	}
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// serverTLS admits clients with a certificate of the authority.
func serverTLS(t *plan.ClientTLS) (*tls.Config, error) {
	c, err := access.ClientTLS(t)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = c.RootCAs, tls.RequireAndVerifyClientCert
	return c, nil
}

// logger passes on what an operator must know.
type logger struct {
	log func(format string, args ...any)
}

func (l logger) Warnf(format string, v ...any) {
	if strings.Contains(format, "Filestore") || strings.Contains(format, "JetStream") {
		l.log("nats: "+format, v...)
	}
}
func (l logger) Fatalf(format string, v ...any) { l.log("nats: "+format, v...) }
func (l logger) Errorf(format string, v ...any) { l.log("nats: "+format, v...) }
func (logger) Noticef(string, ...any)           {}
func (logger) Debugf(string, ...any)            {}
func (logger) Tracef(string, ...any)            {}
