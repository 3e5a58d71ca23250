package qemu

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

//go:embed serve.sh
var serveScript string

// What the layer of examples/serve installs, from its golden tree, and the example.
const (
	stationLayer   = "../../golden/serve/recipes-yoctune/yoctune-scan-station-config/files/yoctune-on-jetson-orin-nano-devkit"
	stationExample = "../../examples/serve"
)

// TestTheUnitsOfServeAnswerInAGuest boots the kernel with a real systemd and the units of examples/serve, with small
// models in place of its own: after boot curl sends a picture to the socket of one, and tokens over TLS to the other.
func TestTheUnitsOfServeAnswerInAGuest(t *testing.T) {
	cache := guestKernel(t)
	library := models.Library(t)
	curl := findTool(t, "curl")
	archive := newSystemdGuest(t, cache, t.TempDir(), serveScript)
	archive.addHostFile("usr/bin/yoctuned-serve", buildServer(t))
	archive.addHostFile("usr/bin/curl", curl)
	archive.addFile("usr/lib/yoctune/plan.json", 0o644, smallModels(t, archive))
	archive.addHostFile("usr/lib/yoctune/sides.txt", filepath.Join(stationExample, "sides.txt"))
	archive.addHostFile(path.Join("usr/lib/yoctune", filepath.Base(library)), library)
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
	report(t, archive.boot(t, cache, "systemd.unit=multi-user.target systemd.show_status=0"), 10)
}

// smallModels replaces the models of the layer's plan by ones with the same inputs and outputs, which an emulated
// processor runs in an instant: those of the example take it minutes. It returns the plan.
func smallModels(t *testing.T, archive *cpio) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(stationLayer, "plan/plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := plan.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	// The means of the three colours; class 2 is their sum, the others are 0.
	bright := onnx.Graph{
		Nodes: []onnx.Node{{Op: "GlobalAveragePool", In: []string{"x"}, Out: []string{"mean"}}, {Op: "Flatten", In: []string{"mean"}, Out: []string{"row"}},
			{Op: "MatMul", In: []string{"row", "w"}, Out: []string{"y"}}},
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{3, 4}, Data: []float32{0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 1, 3, 224, 224)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 1, 4)},
	}
	// The sum of the three inputs of each token, in all 384 places of its vector.
	sum := onnx.Graph{
		Nodes: []onnx.Node{{Op: "Add", In: []string{"input_ids", "attention_mask"}, Out: []string{"a"}}, {Op: "Add", In: []string{"a", "token_type_ids"}, Out: []string{"b"}},
			{Op: "Cast", In: []string{"b"}, Out: []string{"c"}, Attributes: map[string]any{"to": int64(onnx.Float32)}},
			{Op: "Transpose", In: []string{"c"}, Out: []string{"d"}}, {Op: "Mul", In: []string{"d", "ones"}, Out: []string{"last_hidden_state"}}},
		Weights: []onnx.Weight{{Name: "ones", Dims: []int64{1, 1, 384}, Data: slices.Repeat([]float32{1}, 384)}},
		Outputs: []onnx.Value{onnx.Tensor("last_hidden_state", onnx.Float32, 1, 64, 384)},
	}
	for _, name := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		sum.Inputs = append(sum.Inputs, onnx.Tensor(name, onnx.Int64, 1, 64))
	}
	for name, model := range map[string]*onnx.Graph{"orientation": &bright, "sentences": &sum} {
		pl, data := p.Pipelines[name], model.Encode()
		digest := fmt.Sprintf("%x", sha256.Sum256(data))
		pl.Source.Timeout = int64(20 * time.Second)
		for i := range pl.Stages {
			if pl.Stages[i].Model != nil {
				pl.Stages[i].Model.SHA256 = digest
			}
		}
		p.Pipelines[name] = pl
		archive.addFile("usr/share/yoctune/models/"+digest, 0o644, data)
	}
	if err := p.Seal(); err != nil {
		t.Fatal(err)
	}
	text, err := plan.Canonical(*p)
	if err != nil {
		t.Fatal(err)
	}
	return text
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
