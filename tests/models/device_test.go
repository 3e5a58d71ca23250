package models_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yoctune/yoctune/internal/onnx"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/schema/formats/measurement"
	"github.com/yoctune/yoctune/schema/plan"
	"github.com/yoctune/yoctune/tests/models"
)

// shop is a folder with the programs and a configuration with one model, whose device is this machine.
type shop struct {
	t    *testing.T
	dir  string // of the configuration
	bin  string
	vars []string
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, dir: t.TempDir()}
	usr := t.TempDir()
	s.bin = filepath.Join(usr, "bin")
	if out, err := exec.Command("go", "build", "-o", s.bin+"/", "../../cmd/yoctune", "../../cmd/yoctuned").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.CopyFS(filepath.Join(usr, "lib", "yoctune"), os.DirFS("../../golden/runtime")); err != nil {
		t.Fatal(err)
	}
	s.vars = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "XDG_CACHE_HOME=" + models.Python(t), "HOME=" + t.TempDir(), "NO_COLOR=1"}
	s.write("classes.onnx", product(1))
	s.write("set.safetensors", labelled())
	s.write("config.cue", []byte(configuration))
	s.run(0, "yoctuned", "probe", "--board-file", "device.json")
	s.write("boards/mine.json", bytes.Replace(s.read("device.json"), []byte(`"arch": "x86_64"`), []byte(`"arch": "aarch64"`), 1))
	return s
}

const configuration = `package box
layer: {name: "box", maintainer: "M <m@example.com>"}
boards: mine: {facts: "boards/mine.json", machines: scarthgap: ["qemuarm64"]}
targets: cam: {
	board: "mine"
	release: "scarthgap"
	kernel: {recipe: "linux-yocto", version: "6.6"}
	models: classes: {
		source: "classes.onnx"
		optimise: [{kind: "int8-dynamic"}, {kind: "prune", pattern: "unstructured", amount: 0.99}]
		accept: {examples: "set.safetensors", metric: "top-1", maxLoss: 0.2, minSpeedup: 0.01}
	}
	pipelines: p: {
		source: {kind: "file", path: "/data/records", format: "tensor", shape: [1, 32]}
		stages: {
			m: {kind: "model", input: "source", model: "classes"}
			b: {kind: "postprocess", input: "m", decode: "argmax"}
		}
	}
}
`

// product is a classifier of 32 classes: the largest of 32 numbers, each times a factor.
func product(factor float32) []byte {
	w := make([]float32, 32*32)
	for i := range 32 {
		w[33*i] = factor
		w[(33*i+7)%len(w)] += factor / 100
	}
	g := onnx.Graph{
		Opsets:  map[string]int64{"": 17},
		Weights: []onnx.Weight{{Name: "w", Dims: []int64{32, 32}, Data: w}},
		Nodes:   []onnx.Node{{Op: "MatMul", In: []string{"x", "w"}, Out: []string{"y"}}},
		Inputs:  []onnx.Value{onnx.Tensor("x", onnx.Float32, 0, 32)},
		Outputs: []onnx.Value{onnx.Tensor("y", onnx.Float32, 0, 32)},
	}
	return g.Encode()
}

// labelled is a set of 64 examples.
func labelled() []byte {
	const n = 64
	header := fmt.Sprintf(`{"x":{"dtype":"F32","shape":[%d,32],"data_offsets":[0,%d]},"label":{"dtype":"U8","shape":[%[1]d],"data_offsets":[%[2]d,%d]}}`, n, n*32*4, n*32*4+n)
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for i := range n {
		for k := range 32 {
			v := float32((i*7+k*5)%11) / 20
			if k == i%32 {
				v = 1
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
	}
	for i := range n {
		data = append(data, byte(i%32))
	}
	return data
}

func (s *shop) write(name string, data []byte) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) read(name string) []byte {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

// run runs a program in the configuration's folder and returns what it prints.
func (s *shop) run(exit int, words ...string) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, words[0]), words[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.vars
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != exit {
		s.t.Fatalf("%v: exit %d, want %d\n%s", words, got, exit, out)
	}
	return string(out)
}

func (s *shop) expect(exit int, want string, words ...string) {
	s.t.Helper()
	if out := s.run(exit, words...); !strings.Contains(out, want) {
		s.t.Errorf("%v: %s\nwant %q", words, out, want)
	}
}

// by is how the evidence says that its record came.
func (s *shop) by() string {
	s.t.Helper()
	var e struct{ Measurement struct{ By string } }
	if err := json.Unmarshal(s.read("classes.cam.evidence.json"), &e); err != nil {
		s.t.Fatal(err)
	}
	return e.Measurement.By
}

// sshd serves this machine to ssh, in a wrapper that knows its port and keys. Its shell has only the
// usual path.
func (s *shop) sshd() {
	t := s.t
	t.Helper()
	const server = "/usr/sbin/sshd"
	if _, err := os.Stat(server); err != nil {
		if os.Getenv("YOCTUNE_REQUIRE_MODELS") == "1" {
			t.Fatalf("%v: run scripts/setup.sh system", err)
		}
		t.Skipf("%v: run scripts/setup.sh system", err)
	}
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // where sshd puts its unprivileged part
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"sshd_config": fmt.Sprintf("ListenAddress 127.0.0.1\nPort %d\nHostKey %s/host\nAuthorizedKeysFile %[2]s/user.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n", port, dir),
		"ssh_config": fmt.Sprintf("Host device\n\tHostName 127.0.0.1\n\tPort %d\n\tIdentityFile %s/user\n\tIdentitiesOnly yes\n\tUserKnownHostsFile %[2]s/known\n\tStrictHostKeyChecking accept-new\n"+
			"Host absent\n\tHostName 127.0.0.1\n\tPort 1\n", port, dir),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.bin, "ssh"), []byte("#!/bin/sh\nexec /usr/bin/ssh -F "+dir+"/ssh_config \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(server, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for range 100 {
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("sshd does not listen")
}

// The device is reached by ssh: its programs lie where a shell would take the path apart.
func TestModelsAreMeasuredThroughSSH(t *testing.T) {
	library := models.Library(t)
	s := openShop(t)
	s.sshd()
	place := filepath.Join(t.TempDir(), `it's "a" $(touch pwned); dir`)
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{filepath.Join(s.bin, "yoctuned"): "yoctuned", library: "libonnxruntime.so.1.30.0"} {
		if err := os.Symlink(from, filepath.Join(place, to)); err != nil {
			t.Fatal(err)
		}
	}
	optimise := []string{"yoctune", "model", "optimise", "--rounds", "2", "--runs", "2"}
	at := func(host string, more ...string) []string {
		return append(append(append([]string(nil), optimise...), "--on", host), more...)
	}
	out := s.run(0, at("device", "--yoctuned", filepath.Join(place, "yoctuned"), "--library", filepath.Join(place, "libonnxruntime.so.1.30.0"))...)
	for _, want := range []string{"int8-dynamic accepted: ", "prune-unstructured-0-99 rejected: batch 1: it may lose ", "; ssh device\n", "classes: all models: time, batch 1, round 2 of 2\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nwant %q", out, want)
		}
	}
	if by := s.by(); by != "ssh device" {
		t.Error(by)
	}
	s.expect(0, "1 target, 0 errors", "yoctune", "vet")
	s.expect(0, "; ssh device\n", "yoctune", "model", "show")
	s.expect(0, `"evidence": `, "yoctune", "plan", "--target", "cam")

	// What fails there is said here, and changes nothing.
	before := s.read("classes.cam.evidence.json")
	s.expect(1, "ssh device: measuring: exit status 127: ", at("device")...)
	s.expect(1, "/absent.so given: no such file or directory", at("device", "--yoctuned", filepath.Join(place, "yoctuned"), "--library", "/absent.so")...)
	s.expect(1, "Connection refused", at("absent")...)
	for _, host := range []string{"-oProxyCommand=touch pwned", "$(touch pwned)", "a b", "a;touch pwned", "ssh://-x", "a\nb", "`id`", ""} {
		s.expect(2, "is not a host", at(host)...)
	}
	if !bytes.Equal(before, s.read("classes.cam.evidence.json")) {
		t.Error("the evidence changed")
	}
	for _, dir := range []string{s.dir, place, filepath.Dir(place), os.Getenv("HOME")} {
		if _, err := os.Lstat(filepath.Join(dir, "pwned")); err == nil {
			t.Errorf("pwned is in %s", dir)
		}
	}
}

// A record that is carried by hand counts with the device's signature, for its request, device and model
// alone.
func TestRecordsThatAreCarried(t *testing.T) {
	library := models.Library(t)
	s := openShop(t)
	s.vars = append(s.vars, "YOCTUNE_ORT_LIBRARY="+library)
	prepare := func(name string, more ...string) {
		s.run(0, append([]string{"yoctune", "model", "optimise", "--prepare", name, "--rounds", "2", "--runs", "2"}, more...)...)
	}
	measure := func(request, record string) {
		cmd := exec.Command(filepath.Join(s.bin, "yoctuned"), "bench", "model", "--archive", "-q", "-o", record, "--sign", "--key", "device.key")
		cmd.Dir, cmd.Env, cmd.Stdin = s.dir, s.vars, bytes.NewReader(s.read(request))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	judge := func(exit int, want, request, record, key string) {
		t.Helper()
		s.expect(exit, want, "yoctune", "model", "judge", "--request", request, "--record", record, "--device-key", key)
	}
	s.run(0, "yoctuned", "keygen", "--key", "device.key")
	s.run(0, "yoctuned", "keygen", "--key", "other.key")
	prepare("a.tar")
	measure("a.tar", "a.json")
	judge(0, "int8-dynamic accepted", "a.tar", "a.json", "device.key.pub")
	if by := s.by(); !strings.HasPrefix(by, "key ") {
		t.Error(by)
	}
	s.expect(0, "1 target, 0 errors", "yoctune", "vet")
	evidence := s.read("classes.cam.evidence.json")

	judge(1, "signed by none of the keys", "a.tar", "a.json", "other.key.pub")
	prepare("b.tar", "--rounds", "3")
	judge(1, "the record is of another request", "b.tar", "a.json", "device.key.pub")

	// What is changed and not signed again.
	changed := bytes.Replace(s.read("a.json"), []byte(`"cpu"`), []byte(`"gpu"`), 1)
	s.write("c.json", changed)
	s.write("c.json.minisig", s.read("a.json.minisig"))
	judge(1, "the signature does not match the content", "a.tar", "c.json", "device.key.pub")
	s.write("d.json", s.read("a.json"))
	judge(1, "the record has no signature", "a.tar", "d.json", "device.key.pub")

	// What the device's key signs, and is of something else.
	secret, err := signature.Open(s.read("device.key"), "")
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(r *measurement.Record){
		"the record cannot be evidence: it is of another device": func(r *measurement.Record) { r.Device.Identities = []string{"nvidia,p3767-0005", "nvidia,tegra234"} },
		"the record is of another model original":                func(r *measurement.Record) { r.Models[0].SHA256 = strings.Repeat("0", 64) },
		"the record has 1 models, and the request":               func(r *measurement.Record) { r.Models = r.Models[:1] },
		"the labelled set has changed since the measurement":     func(r *measurement.Record) { r.Examples.SHA256 = strings.Repeat("0", 64) },
		`the record has metric "f1", and accept has "top-1"`:     func(r *measurement.Record) { r.Metric = "f1"; scores(r, 3) },
		"the record names no execution provider":                 func(r *measurement.Record) { r.Runtime.Providers = nil },
		"the record lacks the original at batch 1":               func(r *measurement.Record) { r.Models[0].Batches[0].Batch = 2 },
		"a run of -1 ns":            func(r *measurement.Record) { r.Models[0].Batches[0].Times[0][0] = -1 },
		"10 rounds, and the record": func(r *measurement.Record) { r.Models[0].Batches[0].Times = make([][]int64, 10) },
		"the labelled set has 5 examples, and at least 20 are needed": fewer,
	} {
		r, err := measurement.Decode(s.read("a.json"))
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		data, err := plan.Canonical(r)
		if err != nil {
			t.Fatal(err)
		}
		s.write("e.json", data)
		s.write("e.json.minisig", secret.Sign(data, "yoctune measurement"))
		judge(1, want, "a.tar", "e.json", "device.key.pub")
	}

	// The model changed since.
	s.write("classes.onnx", product(2))
	judge(1, "the model has changed since the measurement", "a.tar", "a.json", "device.key.pub")
	s.expect(1, "it is of another model: the sha256 of classes.onnx is", "yoctune", "vet")
	s.write("classes.onnx", product(1))

	// Archives that are not what --prepare wrote.
	for name, c := range map[string]struct{ script, want string }{
		"a path out":   {"mkdir in && cd in && cp ../a.tar x && tar -cPf ../f.tar ../a.json", "f.tar: "},
		"a link":       {"ln -s /etc/passwd original.onnx && tar -cf f.tar original.onnx", "f.tar: "},
		"a device":     {"tar -cPf f.tar /dev/null", "f.tar: "},
		"twice":        {"tar -cf f.tar a.json && tar -rf f.tar a.json", "f.tar: "},
		"a folder":     {"mkdir sub && tar -cf f.tar sub", "f.tar: "},
		"half":         {"head -c 3000 a.tar > f.tar", "f.tar: "},
		"nothing":      {": > f.tar", "request.json"},
		"other bytes":  {"head -c 100000 /dev/urandom > f.tar", "f.tar: "},
		"a huge entry": {`python3 -c 'import tarfile,sys; t=tarfile.TarInfo("a.onnx"); t.size=1<<42; sys.stdout.buffer.write(t.tobuf(tarfile.PAX_FORMAT))' > f.tar`, "f.tar: "},
	} {
		cmd := exec.Command("sh", "-c", "rm -rf in sub f.tar original.onnx; "+c.script)
		cmd.Dir = s.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		judge(1, c.want, "f.tar", "a.json", "device.key.pub")
	}
	// Another file under a name of the request.
	swap := exec.Command("sh", "-c", "rm -rf in; mkdir in && cd in && tar -xf ../a.tar && cp ../config.cue int8-dynamic.onnx && tar -cf ../g.tar *")
	swap.Dir = s.dir
	if out, err := swap.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	judge(1, "the request holds another file for model int8-dynamic", "g.tar", "a.json", "device.key.pub")
	if !bytes.Equal(evidence, s.read("classes.cam.evidence.json")) {
		t.Error("a refusal changed the evidence")
	}

	// The chosen file, and the evidence itself, belong to this model and target.
	sum := sha256.Sum256(s.read("classes.cam.int8-dynamic.onnx"))
	if !strings.Contains(string(evidence), hex.EncodeToString(sum[:])) {
		t.Error("the evidence does not name the chosen file")
	}
	s.write("classes.cam.int8-dynamic.onnx", product(3))
	s.expect(1, "the sha256 of classes.cam.int8-dynamic.onnx is", "yoctune", "vet")
}

func scores(r *measurement.Record, n int) {
	for i := range r.Models {
		for k := range r.Models[i].Batches {
			for e := range r.Models[i].Batches[k].Scores {
				r.Models[i].Batches[k].Scores[e].Counts = make([]int64, n)
			}
		}
	}
}

func fewer(r *measurement.Record) {
	r.Examples.Count = 5
	for i := range r.Models {
		for k := range r.Models[i].Batches {
			r.Models[i].Batches[k].Scores = r.Models[i].Batches[k].Scores[:5]
		}
	}
}
