// Package models gives tests the ONNX Runtime and the trained models that
// fetch.sh, beside this file, installs into build/models.
package models

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Files of [Dir].
const (
	Recogniser = "ch_PP-OCRv4_rec_infer.onnx" // text recognition, input [1 3 48 W] BGR
	Characters = "ppocr_keys_v1.txt"          // its labels
)

// EnvRequire set to 1 makes a test that finds no models fail rather than skip:
// continuous integration has them.
const EnvRequire = "YOCTUNE_REQUIRE_MODELS"

// Dir is the folder of the models.
func Dir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(root(t), "build", "models")
	for _, name := range []string{Recogniser, Characters, library()} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			const how = "no %s in build/models: run tests/models/fetch.sh"
			if os.Getenv(EnvRequire) == "1" {
				t.Fatalf(how, name)
			}
			t.Skipf(how, name)
		}
	}
	return dir
}

// Library is the ONNX Runtime library.
func Library(t testing.TB) string {
	t.Helper()
	return filepath.Join(Dir(t), library())
}

func library() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return arch + "/libonnxruntime.so.1.30.0"
}

// root is the folder of go.mod: tests run in their package's folder.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}
