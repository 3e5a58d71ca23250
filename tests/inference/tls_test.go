package inference

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/yoctune/yoctune/schema/plan"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.make(name, true)
	return a
}

// make writes NAME.crt and NAME.key, signed by the authority, or by itself if it is the authority.
func (a *authority) make(name string, root bool) (cert, key string) {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: root, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if root {
		parent, signer = c, k
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &k.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if root {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
		a.key = k
	}
	text, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert, key
}

var address = regexp.MustCompile(`answers on (https?://[0-9.:]+)`)

// url is the address of TCP.
func (s *service) url() string {
	s.t.Helper()
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if m := address.FindStringSubmatch(s.log.String()); m != nil {
			return m[1]
		}
	}
	s.t.Fatalf("no address: %s", s.log)
	return ""
}

// TCP is reached with TLS by callers who have a token and a certificate of the authority, and by no others.
func TestTCPTakesCallersWhoProveThemselves(t *testing.T) {
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	cert, key := ours.make("server", false)
	tokens := filepath.Join(ours.dir, "tokens")
	if err := os.WriteFile(tokens, []byte("# of the line\n0123456789abcdef-first\n0123456789abcdef-second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := id4()
	p.Source.Request = &plan.Request{
		Address: "127.0.0.1:0", Tokens: tokens,
		TLS: &plan.TLS{Certificate: cert, Key: key, ClientCA: filepath.Join(ours.dir, "ours.crt")},
	}
	s := serve(t, p, map[string][]byte{"m.onnx": identity(4, false)})
	url := s.url()
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	client := func(a *authority, name string, v uint16) *http.Client {
		c := &tls.Config{RootCAs: roots, MaxVersion: v}
		if a != nil {
			cert, key := a.make(name, false)
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, ForceAttemptHTTP2: true}, Timeout: 10 * time.Second}
	}
	for _, c := range []struct {
		name   string
		client *http.Client
		token  string
		status int // 0: no connection
	}{
		{"a certificate and a token", client(ours, "client", 0), "Bearer 0123456789abcdef-second", 200},
		{"no token", client(ours, "client", 0), "", 401},
		{"another token", client(ours, "client", 0), "Bearer 0123456789abcdef-third", 401},
		{"a token of another scheme", client(ours, "client", 0), "Basic 0123456789abcdef-first", 401},
		{"no certificate", client(nil, "", 0), "Bearer 0123456789abcdef-first", 0},
		{"a certificate of others", client(others, "client", 0), "Bearer 0123456789abcdef-first", 0},
		{"an old TLS", client(ours, "client", tls.VersionTLS11), "Bearer 0123456789abcdef-first", 0},
		{"no TLS", http.DefaultClient, "Bearer 0123456789abcdef-first", 0},
	} {
		to := url
		if c.client == http.DefaultClient {
			to = "http" + url[len("https"):]
		}
		q, err := http.NewRequestWithContext(context.Background(), "GET", to+"/v2/health/ready", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			q.Header.Set("Authorization", c.token)
		}
		a, err := c.client.Do(q)
		status := 0
		if err == nil {
			status = a.StatusCode
			_ = a.Body.Close()
		}
		if status != c.status && (c.status != 0 || status != 400) {
			t.Errorf("%s: %d %v, want %d", c.name, status, err, c.status)
		}
	}
	s.must(binaryRequest("[1,4]", floats(1, 2, 3, 4), "")) // the unix socket needs neither
}
