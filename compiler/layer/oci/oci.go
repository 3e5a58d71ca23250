// Package oci keeps layers in OCI registries: one artifact a layer, named by
// its digest.
//
// Content from a registry is untrusted until it is checked: sizes are bounded before
// anything is read, every blob is verified by its digest, and of the archive only regular
// files with a path inside the layer are taken, each of which the layer's own manifest must
// list with the same digest.
package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/yoctune/yoctune/compiler/layer/tree"
	"github.com/yoctune/yoctune/emitters"
	"github.com/yoctune/yoctune/internal/signature"
	"github.com/yoctune/yoctune/internal/version"
)

// Types of the artifact and of its one blob.
const (
	Type      = "application/vnd.yoctune.layer.v1"
	mediaType = "application/vnd.yoctune.layer.v1.tar+gzip"
)

// Bounds on what is taken from a registry, in bytes.
const (
	maxManifest = 1 << 20
	maxBlob     = 64 << 20
	maxUnpacked = 256 << 20
	maxFiles    = 20000
)

// Reasons to refuse; test with errors.Is.
var (
	ErrReference = errors.New("invalid artifact reference")
	errNoLayer   = errors.New("the artifact is not a yoctune layer")
	ErrContent   = errors.New("the artifact has invalid content")
)

// Options configure the connection to a registry.
type Options struct {
	PlainHTTP bool // also where the registry is not this machine
}

// Layer is a layer to publish: its files, name and release.
type Layer struct {
	Name, Release string
	Files         []emitters.File // manifest and signatures included
}

// Pack makes the blob: sorted, without times or owners, so that the same layer has
// the same digest everywhere.
func (l Layer) Pack() ([]byte, error) {
	files := slices.Clone(l.Files)
	slices.SortFunc(files, func(a, b emitters.File) int { return strings.Compare(a.Path, b.Path) })
	var buf bytes.Buffer
	zip, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("packing the layer: %w", err)
	}
	w := tar.NewWriter(zip)
	for _, f := range files {
		mode := int64(0o644)
		if f.Mode&0o111 != 0 {
			mode = 0o755
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: mode, Size: int64(len(f.Data)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Path, err)
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Path, err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("packing the layer: %w", err)
	}
	return buf.Bytes(), nil
}

// repository opens the repository of a reference.
func repository(ref string, o Options) (*remote.Repository, registry.Reference, error) {
	r, err := registry.ParseReference(ref)
	if err != nil {
		return nil, r, fmt.Errorf("%w: %s: %w", ErrReference, ref, err)
	}
	if r.Reference == "" {
		return nil, r, fmt.Errorf("%w: %s has neither a tag nor a digest", ErrReference, ref)
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, r, fmt.Errorf("reading the logins of docker: %w", err)
	}
	return &remote.Repository{
		Client:    &auth.Client{Client: retry.DefaultClient, Cache: auth.NewCache(), Credential: credentials.Credential(store), Header: map[string][]string{"User-Agent": {"yoctune/" + version.Version}}},
		Reference: r,
		PlainHTTP: o.PlainHTTP || isLocal(r.Host()),
	}, r, nil
}

// isLocal reports whether a registry runs on this machine. Only there may a password be
// sent without encryption unless [Options] allow it.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// Push publishes the layer under a reference with a tag and returns the reference
// with its digest.
func Push(ctx context.Context, l Layer, ref string, o Options) (string, error) {
	repo, r, err := repository(ref, o)
	if err != nil {
		return "", err
	}
	if _, err := r.Digest(); err == nil {
		return "", fmt.Errorf("%w: %s is a digest, which follows from the content; give a tag", ErrReference, ref)
	}
	blob, err := l.Pack()
	if err != nil {
		return "", err
	}
	layer := content.NewDescriptorFromBytes(mediaType, blob)
	layer.Annotations = map[string]string{ocispec.AnnotationTitle: "meta-" + l.Name + ".tar.gz"}
	config := ocispec.DescriptorEmptyJSON
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: Type,
		Config: config, Layers: []ocispec.Descriptor{layer},
		Annotations: map[string]string{
			ocispec.AnnotationTitle:    "meta-" + l.Name,
			ocispec.AnnotationLicenses: "MIT",
			"org.yoctune.layer":        l.Name,
			"org.yoctune.release":      l.Release,
		},
	})
	if err != nil {
		return "", fmt.Errorf("pushing to %s: %w", ref, err)
	}
	for _, b := range []struct {
		desc ocispec.Descriptor
		data []byte
	}{{config, config.Data}, {layer, blob}} {
		there, err := repo.Blobs().Exists(ctx, b.desc)
		if err == nil && !there {
			err = repo.Blobs().Push(ctx, b.desc, bytes.NewReader(b.data))
		}
		if err != nil {
			return "", fmt.Errorf("pushing to %s: %w", ref, err)
		}
	}
	desc := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, manifest)
	if err := repo.PushReference(ctx, desc, bytes.NewReader(manifest), r.Reference); err != nil {
		return "", fmt.Errorf("pushing to %s: %w", ref, err)
	}
	return r.Registry + "/" + r.Repository + "@" + desc.Digest.String(), nil
}

// Pull fetches a layer and returns it with its reference by digest. Nothing is
// written. The error wraps [ErrReference], [errNoLayer] or [ErrContent].
func Pull(ctx context.Context, ref string, o Options) (Layer, string, error) {
	repo, r, err := repository(ref, o)
	if err != nil {
		return Layer{}, "", err
	}
	desc, raw, err := manifestOf(ctx, repo, r.Reference)
	if err != nil {
		return Layer{}, "", fmt.Errorf("pulling %s: %w", ref, err)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(raw, &m); err != nil || m.ArtifactType != Type || len(m.Layers) != 1 || m.Layers[0].MediaType != mediaType {
		return Layer{}, "", fmt.Errorf("pulling %s: %w", ref, errNoLayer)
	}
	blob := m.Layers[0]
	if blob.Size < 0 || blob.Size > maxBlob {
		return Layer{}, "", fmt.Errorf("pulling %s: %w: %d bytes", ref, ErrContent, blob.Size)
	}
	data, err := content.FetchAll(ctx, repo.Blobs(), blob)
	if err != nil {
		return Layer{}, "", fmt.Errorf("pulling %s: %w", ref, err)
	}
	l := Layer{Name: m.Annotations["org.yoctune.layer"], Release: m.Annotations["org.yoctune.release"]}
	if l.Files, err = Unpack(data); err != nil {
		return Layer{}, "", fmt.Errorf("pulling %s: %w", ref, err)
	}
	return l, r.Registry + "/" + r.Repository + "@" + desc.Digest.String(), nil
}

// manifestOf fetches the manifest of a tag or digest, and verifies its digest.
func manifestOf(ctx context.Context, repo *remote.Repository, reference string) (ocispec.Descriptor, []byte, error) {
	desc, in, err := repo.FetchReference(ctx, reference)
	if err != nil {
		return desc, nil, err
	}
	defer in.Close()
	if desc.Size < 0 || desc.Size > maxManifest {
		return desc, nil, fmt.Errorf("%w: its manifest has %d bytes", ErrContent, desc.Size)
	}
	raw, err := content.ReadAll(in, desc)
	return desc, raw, err
}

// Unpack reads a blob into memory. The error wraps [ErrContent].
func Unpack(blob []byte) ([]emitters.File, error) {
	zip, err := gzip.NewReader(bytes.NewReader(blob))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	in := tar.NewReader(io.LimitReader(zip, maxUnpacked))
	var files []emitters.File
	seen := map[string]bool{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrContent, err)
		}
		folded := strings.ToLower(h.Name)
		switch {
		case h.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%w: %q is not a regular file", ErrContent, h.Name)
		case !fs.ValidPath(h.Name) || h.Name == "." || strings.ContainsAny(h.Name, "\\\x00"):
			return nil, fmt.Errorf("%w: %q is not a path inside the layer", ErrContent, h.Name)
		case seen[folded]:
			return nil, fmt.Errorf("%w: %q appears twice", ErrContent, h.Name)
		case len(files) == maxFiles:
			return nil, fmt.Errorf("%w: more than %d files", ErrContent, maxFiles)
		}
		seen[folded] = true
		data, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrContent, h.Name, err)
		}
		mode := fs.FileMode(0o644)
		if h.Mode&0o111 != 0 {
			mode = 0o755
		}
		files = append(files, emitters.File{Path: h.Name, Data: data, Mode: mode})
	}
	// A file that is a folder of another could not be written.
	for name := range seen {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if seen[dir] {
				return nil, fmt.Errorf("%w: %q is both a file and a folder", ErrContent, dir)
			}
		}
	}
	if err := tree.CheckListed(files, signature.Extension); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContent, err)
	}
	return files, nil
}
