package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// startPeer starts MLServer with the models.
func (s *study) startPeer(ctx context.Context) (r *server, overHTTP, overGRPC string, err error) {
	dir := filepath.Join(s.dir, "peer")
	var addresses [3]string
	var ports [3]int
	for i := range addresses {
		if addresses[i], err = freeAddress(); err != nil {
			return nil, "", "", err
		}
		ports[i], _ = strconv.Atoi(addresses[i][len("127.0.0.1:"):])
	}
	type tensor struct {
		Name     string  `json:"name"`
		Datatype string  `json:"datatype"`
		Shape    []int64 `json:"shape"`
	}
	free := func(shape []int64) []int64 { return append([]int64{-1}, shape[1:]...) }
	files := map[string]any{"settings.json": map[string]any{
		"host": "127.0.0.1", "http_port": ports[0], "grpc_port": ports[1], "metrics_port": ports[2], "parallel_workers": 0, "debug": false,
	}}
	for i := range models {
		m := &models[i]
		files[m.name+"/model-settings.json"] = map[string]any{
			"name": m.name, "implementation": "peer.ONNX", "platform": "onnx",
			"inputs":  []tensor{{m.input, "FP32", free(m.shape)}},
			"outputs": []tensor{{m.output, "FP32", free(m.classes)}},
			"parameters": map[string]any{
				"uri": s.file(m), "version": "1", "extra": map[string]any{"threads": runtime.NumCPU()},
			},
		}
	}
	for name, v := range files {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, "", "", err
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, "", "", err
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, "", "", err
		}
	}
	script, err := filepath.Abs(filepath.Join(s.here, "peer.py"))
	if err != nil {
		return nil, "", "", err
	}
	r = &server{cmd: exec.CommandContext(ctx, s.python, script, "start", dir)}
	r.cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Dir(script), "PYTHONDONTWRITEBYTECODE=1")
	if err := r.await(ctx, filepath.Join(s.dir, "peer.log"), "gRPC server running"); err != nil {
		return nil, "", "", err
	}
	for i := range models {
		if err := awaitReady(ctx, addresses[0], models[i].name); err != nil {
			_ = r.stop()
			return nil, "", "", err
		}
	}
	return r, addresses[0], addresses[1], nil
}

func awaitReady(ctx context.Context, address, name string) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		p, err := http.Get("http://" + address + "/v2/models/" + name + "/ready")
		if err != nil {
			continue
		}
		_ = p.Body.Close()
		if p.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("MLServer does not serve %s", name)
}
