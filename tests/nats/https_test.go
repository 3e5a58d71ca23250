package nats

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// authority signs certificates, and writes them to a folder.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca", time.Now().Add(time.Hour))
	return a
}

// issue writes NAME.crt and NAME.key, for 127.0.0.1. The first is that of the authority itself.
func (a *authority) issue(name string, end time.Time) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if a.cert == nil {
		c.IsCA, c.BasicConstraintsValid = true, true
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(crand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(a.path(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *authority) path(file string) string { return filepath.Join(a.dir, file) }

// identity is the client of a name.
func (a *authority) identity(name string) *plan.ClientTLS {
	return &plan.ClientTLS{CA: a.path("ca.crt"), Certificate: a.path(name + ".crt"), Key: a.path(name + ".key")}
}

// Results go to a server over HTTPS with a client's certificate, in order and on one connection; a certificate that
// has expired is a reason in the log, and the pipeline goes on.
func TestResultsArePostedOverTLS(t *testing.T) {
	a := newAuthority(t)
	a.issue("server", time.Now().Add(time.Hour))
	a.issue("device", time.Now().Add(time.Hour))
	a.issue("expired", time.Now().Add(-time.Hour))
	var mu sync.Mutex
	var frames []uint64
	connections := map[string]bool{}
	pool := x509.NewCertPool()
	text, err := os.ReadFile(a.path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(text)
	server := &http.Server{
		TLSConfig: &tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert},
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var v struct{ Frame uint64 }
			mu.Lock()
			defer mu.Unlock()
			if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&v) != nil {
				t.Errorf("%s %v", r.Method, r.Header)
			}
			frames, connections[r.RemoteAddr] = append(frames, v.Frame), true
		}),
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.ServeTLS(l, a.path("server.crt"), a.path("server.key")) }()
	t.Cleanup(func() { _ = server.Close() })

	post := func(identity string) func(*plan.Plan, *plan.Delivery) {
		return func(p *plan.Plan, _ *plan.Delivery) {
			p.Cluster = nil
			door := p.Pipelines["door"]
			door.Sink = plan.PipelineSink{Kind: "http", URL: "https://" + l.Addr().String() + "/results", TLS: a.identity(identity)}
			p.Pipelines["door"] = door
		}
	}
	p := newDevice(t, post("device")).pipeline("--frames", "500")
	<-p.ended
	mu.Lock()
	for i, n := range frames {
		if n != uint64(i) {
			t.Fatalf("result %d is of frame %d", i, n)
		}
	}
	if len(frames) != 500 || len(connections) != 1 {
		t.Errorf("%d results on %d connections\n%s", len(frames), len(connections), p.log)
	}
	frames = nil
	mu.Unlock()
	p = newDevice(t, post("expired")).pipeline("--frames", "200")
	<-p.ended
	mu.Lock()
	defer mu.Unlock()
	if len(frames) != 0 || !strings.Contains(p.log.String(), "expired certificate") {
		t.Errorf("%d results with an expired certificate\n%s", len(frames), p.log)
	}
}
