// Command packages makes what people install, from the files that command dist made:
//
//	yoctune_<version>_{amd64,arm64}.deb                 with the runtime folder, man pages, completions, examples
//	yoctuned_<version>_{amd64,arm64}.deb                and yoctuned-serve_…: the programs of a device
//	yoctune-<version>-{linux,darwin}-{amd64,arm64}.tar.gz  the same, to unpack anywhere
//	*.spdx.json, *.cdx.json                             what each of them is made of
//	Containerfile                                       an image for CI with the .deb
//	SHA256SUMS                                          the digests of everything in the folder
//	SHA256SUMS.minisig, SHA256SUMS.sig                  its signatures, with minisign's and cosign's key
//
// The same commit gives the same bytes. The time in archives is SOURCE_DATE_EPOCH.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/yoctune/yoctune/internal/licence"
	"github.com/yoctune/yoctune/internal/sbom"
)

const module = "github.com/yoctune/yoctune"

// packager makes the packages of one release.
type packager struct {
	dist    string // folder of the release
	nfpm    string // the program
	version string
	when    time.Time
	work    string // scratch folder
	systems []string
	share   map[string][]file
	parts   map[string][]licence.Part
}

func main() {
	dist := flag.String("o", "dist", "folder that command dist wrote")
	nfpm := flag.String("nfpm", "build/tools/nfpm", "program nfpm")
	systems := flag.String("systems", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "systems that yoctune is built for; the programs of the device are packaged for those of Linux")
	signOnly := flag.Bool("sign-only", false, "write SHA256SUMS and its signatures, and nothing else")
	flag.Parse()
	if err := run(*dist, *nfpm, strings.Split(*systems, ","), *signOnly); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(dist, nfpm string, systems []string, signOnly bool) error {
	if signOnly {
		return sign(dist)
	}
	p := packager{dist: dist, systems: systems, share: map[string][]file{}, parts: map[string][]licence.Part{}}
	var err error
	if p.nfpm, err = exec.LookPath(nfpm); err != nil {
		return fmt.Errorf("%w (make dist installs it)", err)
	}
	if p.when, err = sbom.Epoch(); err != nil {
		return err
	}
	if p.version, err = releaseVersion(dist); err != nil {
		return err
	}
	if p.work, err = os.MkdirTemp("", "yoctune-packages-"); err != nil {
		return err
	}
	defer os.RemoveAll(p.work)
	for _, step := range []func() error{p.collect, p.compiler, p.runtime, p.containerfile} {
		if err := step(); err != nil {
			return err
		}
	}
	return sign(dist)
}

// releaseVersion is that of the release files.
func releaseVersion(dist string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dist, "manifest.json"))
	if err != nil {
		return "", fmt.Errorf("%w (run command dist first)", err)
	}
	var m struct{ Version string }
	if err := json.Unmarshal(raw, &m); err != nil || m.Version == "" {
		return "", fmt.Errorf("%s has no version: %w", filepath.Join(dist, "manifest.json"), err)
	}
	return m.Version, nil
}

// programs are packaged by these names; each is built from a folder with tags.
var programs = []struct{ name, pkg, tags string }{
	{"yoctune", "./cmd/yoctune", ""}, {"yoctuned", "./cmd/yoctuned", ""}, {"yoctuned-serve", "./cmd/yoctuned", "serve"},
}

// collect makes the man pages and completions, and reads the licences of what is linked.
func (p *packager) collect() error {
	for _, prog := range programs {
		parts, err := licence.Parts(context.Background(), prog.pkg, prog.tags)
		if err != nil {
			return err
		}
		p.parts[prog.name] = parts
		if prog.tags != "" {
			continue // its commands are those of the smaller program
		}
		dir := filepath.Join(p.work, "share-"+prog.name)
		cmd := exec.Command("go", "run", "-trimpath", "-tags", "manual", "-ldflags", p.linkVersion(), prog.pkg, dir, fmt.Sprint(p.when.Unix()))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("man pages of %s: %w\n%s", prog.name, err, out)
		}
		files, err := readTree(dir, "share")
		if err != nil {
			return err
		}
		p.share[prog.name] = files
	}
	return nil
}

func (p *packager) linkVersion() string {
	return "-X " + module + "/internal/version.Version=" + p.version
}

// compiler packages yoctune for every system.
func (p *packager) compiler() error {
	common, err := p.compilerFiles()
	if err != nil {
		return err
	}
	for _, name := range p.systems {
		system, arch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("-systems %s: write SYSTEM/ARCHITECTURE", name)
		}
		program := filepath.Join(p.work, "yoctune-"+system+"-"+arch)
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= "+p.linkVersion(), "-o", program, "./cmd/yoctune")
		cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build yoctune for %s: %w\n%s", name, err, out)
		}
		binary, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		files := append([]file{{"bin/yoctune", binary, 0o755}}, common...)
		if err := p.archive("yoctune", system, arch, files); err != nil {
			return err
		}
		if system != "linux" {
			continue
		}
		if err := p.deb(pack{Name: "yoctune", Arch: arch, Files: files, Suggests: []string{"git"}, Summary: "turn a tuning configuration into a Yocto layer", Text: compilerText}); err != nil {
			return err
		}
	}
	return nil
}

const compilerText = `Describe power modes, kernel options, sysctls, storage, services and
inference pipelines of a Jetson device in CUE, HCL or Jsonnet. yoctune checks
them against facts about module, release and kernel, and writes a Yocto layer.
.
The package contains the programs that layers install on the device.`

const runtimeText = `yoctuned writes the settings of a plan that yoctune compiled, reads them back,
verifies them, repairs drift and restores the original values. It also runs
the plan's inference pipelines.
.
On a device the layer of the image installs it. On a workstation it tries a
plan on a synthetic device.`

const serverText = `The second build of yoctuned: the same commands, with a web page, metrics,
history and pipelines over the network.`

// compilerFiles are the files of yoctune that do not depend on the system.
func (p *packager) compilerFiles() ([]file, error) {
	files, err := readTree(filepath.Join(p.dist, "lib", "yoctune"), "lib/yoctune")
	if err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	files = append(files, p.share["yoctune"]...)
	docs, err := documents()
	if err != nil {
		return nil, err
	}
	return append(files, docs...), nil
}

// runtime packages the programs of the device.
func (p *packager) runtime() error {
	for _, prog := range programs[1:] {
		for _, name := range p.systems {
			arch, ok := strings.CutPrefix(name, "linux/")
			if !ok {
				continue
			}
			binary, err := os.ReadFile(filepath.Join(p.dist, fmt.Sprintf("%s-%s-linux-%s", prog.name, p.version, arch)))
			if err != nil {
				return err
			}
			d := pack{
				Name: prog.name, Arch: arch, Files: append([]file{{"bin/" + prog.name, binary, 0o755}}, p.share[prog.name]...),
				Summary: "enforce a tuning plan on a Jetson device", Text: runtimeText,
				Depends: []string{"libc6 (>= 2.34)"}, Suggests: []string{"libturbojpeg0"},
			}
			if prog.tags != "" {
				d.Summary, d.Text = "serve metrics, history and network pipelines of a Jetson device", serverText
				// The page yoctuned-serve(1) is that of the command "yoctuned serve".
				d.Depends = append(d.Depends, "yoctuned (= "+p.debVersion()+")")
			}
			if err := p.deb(d); err != nil {
				return err
			}
		}
	}
	return nil
}

//go:embed Containerfile.tmpl
var containerfile string

// containerfile writes the recipe of an image for CI.
func (p *packager) containerfile() error {
	t, err := template.New("Containerfile").Parse(containerfile)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, struct{ Version, Deb string }{p.version, p.debVersion()}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dist, "Containerfile"), b.Bytes(), 0o644)
}

// bills writes what a file of the release is made of.
func (p *packager) bills(name, program string) error {
	raw, err := os.ReadFile(filepath.Join(p.dist, name))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	digest := hex.EncodeToString(sum[:])
	fmt.Printf("%s  %9d  %s\n", digest[:16], len(raw), name)
	parts := p.parts[program]
	doc := sbom.New(sbom.Package{Name: name, Version: p.version, SHA256: digest, Licence: licence.Expression(licence.IDs(parts))}, nil, digest, "yoctune-dist-"+p.version, p.when)
	if program == "yoctune" { // the runtime folder in it
		parts = slices.Concat(parts, p.parts["yoctuned"], p.parts["yoctuned-serve"])
		slices.SortFunc(parts, func(a, b licence.Part) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
		})
		parts = slices.CompactFunc(parts, func(a, b licence.Part) bool { return a.Path == b.Path })
	}
	for _, m := range parts {
		if m.Path != module {
			doc.Depends(sbom.GoModule(m.Path, m.Version, licence.Expression(m.IDs)))
		}
	}
	return doc.WriteBeside(filepath.Join(p.dist, name))
}
