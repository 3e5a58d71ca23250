package qemu

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/tests/models"
)

//go:embed serve.sh
var serveScript string

// What the layer of examples/serve installs, from its golden tree, and the example.
const (
	stationLayer   = "../../golden/serve/recipes-yoctune/yoctune-scan-station-config/files/yoctune-on-jetson-orin-nano-devkit"
	stationExample = "../../examples/serve"
)

// TestTheUnitsOfServeAnswerInAGuest boots the kernel with a real systemd and the units of examples/serve: after
// boot curl sends a picture to the socket of one, and tokens over TLS to the other.
func TestTheUnitsOfServeAnswerInAGuest(t *testing.T) {
	if os.Getenv("YOCTUNE_QEMU_SERVE") == "" {
		t.Skip("YOCTUNE_QEMU_SERVE is not set; `scripts/prove.sh systemd` sets it: the guest takes half a minute, and minutes without KVM")
	}
	cache := guestKernel(t)
	library := models.Library(t)
	curl := findTool(t, "curl")
	archive := newSystemdGuest(t, cache, t.TempDir(), serveScript)
	archive.addHostFile("usr/bin/yoctuned-serve", buildServer(t))
	archive.addHostFile("usr/bin/curl", curl)
	for name, host := range map[string]string{
		"usr/share/yoctune/models/2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2": filepath.Join(models.Dir(t), models.Orientation),
		"usr/share/yoctune/models/8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6": models.Sentences(t),
		"usr/lib/yoctune/plan.json":                          filepath.Join(stationLayer, "plan/plan.json"),
		"usr/lib/yoctune/sides.txt":                          filepath.Join(stationExample, "sides.txt"),
		path.Join("usr/lib/yoctune", filepath.Base(library)): library,
	} {
		archive.addHostFile(name, host)
	}
	for _, program := range []string{library, curl} {
		for _, l := range libraries(program) {
			archive.addHostFile(strings.TrimPrefix(l, "/"), l)
		}
	}
	for _, name := range []string{"orientation", "sentences"} {
		unit := "yoctuned-pipeline@" + name + ".service"
		archive.addHostFile("lib/systemd/system/"+unit+".d/50-yoctune.conf", filepath.Join(stationLayer, unit+".d-50-yoctune.conf"))
		archive.addFile("lib/systemd/system/"+unit+".d/log.conf", 0o644, fmt.Appendf(nil, "[Service]\nStandardOutput=append:/%s.log\nStandardError=append:/%[1]s.log\n", name))
		archive.addSymlink("etc/systemd/system/multi-user.target.wants/"+unit, "/lib/systemd/system/yoctuned-pipeline@.service")
	}
	archive.addFile("expect", 0o644, nil) // no settings
	archive.addFile("page.jpg", 0o644, page(t))
	head, body := sentence()
	archive.addFile("sentence", 0o644, body)
	archive.addFile("sentence.length", 0o644, []byte(strconv.Itoa(head)))
	for name, data := range certificates(t) {
		archive.addFile(name, 0o600, data)
	}
	archive.memory = 2048
	report(t, archive.boot(t, cache, "systemd.unit=multi-user.target systemd.show_status=0"), 10)
}

// buildServer builds yoctuned-serve.
func buildServer(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "yoctuned-serve")
	if out, err := exec.Command("go", "build", "-tags", "serve", "-trimpath", "-ldflags=-s -w", "-o", file, "../../cmd/yoctuned").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// page draws a JPEG file with lines as of text.
func page(t *testing.T) []byte {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 480, 640))
	for y := range 640 {
		for x := range 480 {
			v := uint8(255)
			if y%24 < 10 && x > 40 && x < 440 && x%9 < 5 {
				v = 30
			}
			m.SetGray(x, y, color.Gray{Y: v})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sentence is a request of 64 tokens in three tensors; head is the length of its JSON.
func sentence() (head int, body []byte) {
	text := `{"parameters":{"binary_data_output":true},"inputs":[`
	var data []byte
	for n, name := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		text += fmt.Sprintf(`%s{"name":%q,"shape":[1,64],"datatype":"INT64","parameters":{"binary_data_size":512}}`, strings.Repeat(",", min(n, 1)), name)
		for i := range 64 {
			v := [...]int{2023 + i, 1, 0}[n]
			data = binary.LittleEndian.AppendUint64(data, uint64(v))
		}
	}
	text += "]}"
	return len(text), append([]byte(text), data...)
}

// certificates returns an authority, and the keys and certificates of the server and of a client.
func certificates(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	issue := func(name, keyName string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(len(files) + 1)), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: parent == nil, BasicConstraintsValid: true,
		}
		if parent == nil {
			parent, by = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		files[keyName] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made, key
	}
	authority, key := issue("ca.pem", "ca.key", nil, nil)
	issue("etc/station/server.crt", "etc/station/server.key", authority, key)
	issue("client.pem", "client.key", authority, key)
	files["etc/station/clients.crt"] = files["ca.pem"]
	return files
}
