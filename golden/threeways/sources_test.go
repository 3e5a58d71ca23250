package threeways

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/compiler/report/review"
)

// sources is a configuration with every kind of live source and of custom stage.
var sources = map[string]string{
	"config.cue": `package sources
import "github.com/yoctune/yoctune/schema"
schema.#Config & {
	layer: {name: "sources", maintainer: "A <a@example.com>"}
	targets: t: {board: "orin-nano-8gb", machine: "jetson-orin-nano-devkit", release: "scarthgap", packages: "gstreamer1.0-plugins-nvvidconv": "install"
		pipelines: {
			cam: {
				source: {kind: "v4l2", path: "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0", format: "mjpeg", width: 1280, height: 720, fps: 30, timeout: "500ms", restart: "on-failure"}
				stages: own: {kind: "custom", input: "source", plugin: "/usr/lib/vision/brightness.so", options: "40", inside: true, deadline: "20ms"}
			}
			net: {
				source: {kind: "rtsp", url: "rtsp://192.0.2.7:554/live/1", format: "nv12", width: 1280, height: 720, latency: "50ms"}
				stages: {
					own: {kind: "custom", input: "source", exec: ["/usr/bin/embed", "--fast"], shape: [1, 128]}
					dump: {kind: "postprocess", input: "own", decode: "raw"}
				}
			}
			ring: {
				source: {kind: "shm", path: "/dev/shm/frames", format: "grey", width: 640, height: 480}
				stages: own: {kind: "custom", input: "source", exec: ["/usr/bin/count"]}
			}
			clip: {
				source: {kind: "file", path: "/srv/clip.avi", format: "mjpeg", decoders: 2}
				stages: own: {kind: "custom", input: "source", exec: ["/usr/bin/count"]}
			}
		}
	}
}
`,
	"config.hcl": `layer {
  name       = "sources"
  maintainer = "A <a@example.com>"
}
target "t" {
  board    = "orin-nano-8gb"
  machine  = "jetson-orin-nano-devkit"
  release  = "scarthgap"
  packages = { "gstreamer1.0-plugins-nvvidconv" = "install" }
  pipeline "cam" {
    source {
      kind    = "v4l2"
      path    = "/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0"
      format  = "mjpeg"
      width   = 1280
      height  = 720
      fps     = 30
      timeout = "500ms"
      restart = "on-failure"
    }
    stage "own" {
      kind     = "custom"
      input    = "source"
      plugin   = "/usr/lib/vision/brightness.so"
      options  = "40"
      inside   = true
      deadline = "20ms"
    }
  }
  pipeline "net" {
    source {
      kind    = "rtsp"
      url     = "rtsp://192.0.2.7:554/live/1"
      format  = "nv12"
      width   = 1280
      height  = 720
      latency = "50ms"
    }
    stage "own" {
      kind  = "custom"
      input = "source"
      exec  = ["/usr/bin/embed", "--fast"]
      shape = [1, 128]
    }
    stage "dump" {
      kind   = "postprocess"
      input  = "own"
      decode = "raw"
    }
  }
  pipeline "ring" {
    source {
      kind   = "shm"
      path   = "/dev/shm/frames"
      format = "grey"
      width  = 640
      height = 480
    }
    stage "own" {
      kind  = "custom"
      input = "source"
      exec  = ["/usr/bin/count"]
    }
  }
  pipeline "clip" {
    source {
      kind     = "file"
      path     = "/srv/clip.avi"
      format   = "mjpeg"
      decoders = 2
    }
    stage "own" {
      kind  = "custom"
      input = "source"
      exec  = ["/usr/bin/count"]
    }
  }
}
`,
	"config.jsonnet": `local count = {own: {kind: 'custom', input: 'source', exec: ['/usr/bin/count']}};
{
  layer: {name: 'sources', maintainer: 'A <a@example.com>'},
  targets: {t: {board: 'orin-nano-8gb', machine: 'jetson-orin-nano-devkit', release: 'scarthgap', packages: {'gstreamer1.0-plugins-nvvidconv': 'install'},
    pipelines: {
      cam: {
        source: {kind: 'v4l2', path: '/dev/v4l/by-path/platform-3610000.usb-usb-0:2.1:1.0-video-index0', format: 'mjpeg', width: 1280, height: 720, fps: 30, timeout: '500ms', restart: 'on-failure'},
        stages: {own: {kind: 'custom', input: 'source', plugin: '/usr/lib/vision/brightness.so', options: '40', inside: true, deadline: '20ms'}},
      },
      net: {
        source: {kind: 'rtsp', url: 'rtsp://192.0.2.7:554/live/1', format: 'nv12', width: 1280, height: 720, latency: '50ms'},
        stages: {
          own: {kind: 'custom', input: 'source', exec: ['/usr/bin/embed', '--fast'], shape: [1, 128]},
          dump: {kind: 'postprocess', input: 'own', decode: 'raw'},
        },
      },
      ring: {source: {kind: 'shm', path: '/dev/shm/frames', format: 'grey', width: 640, height: 480}, stages: count},
      clip: {source: {kind: 'file', path: '/srv/clip.avi', format: 'mjpeg', decoders: 2}, stages: count},
    },
  }},
}
`,
}

// Sources and custom stages have the same meaning in the three languages. A network stream
// equals the command that receives it.
func TestSourcesAreTheSameInThreeLanguages(t *testing.T) {
	var first []byte
	for name, text := range sources {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		doc, _ := open(t, dir).Document("")
		if doc == nil {
			t.Fatalf("%s: no plan", name)
		}
		got, err := doc.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if !bytes.Equal(got, first) {
			t.Errorf("%s gives another plan:\n%s", name, review.UnifiedDiff(first, got, "one", name))
		}
		if name != "config.cue" {
			continue
		}
		want := "gst-launch-1.0 -q rtspsrc location=rtsp://192.0.2.7:554/live/1 protocols=tcp latency=50 drop-on-latency=true ! decodebin ! nvvidconv ! video/x-raw,format=NV12,width=1280,height=720 ! fdsink sync=false"
		if got := strings.Join(doc.Pipelines["net"].Source.Exec, " "); got != want {
			t.Errorf("a stream of the network is\n%s, want\n%s", got, want)
		}
		for name, live := range map[string]bool{"cam": true, "net": true, "ring": true, "clip": false} {
			p := doc.Pipelines[name]
			if p.Source.Live != live || live && (p.Queue.Policy != "drop-oldest" || p.Queue.Capacity != 1) || !live && p.Queue.Policy != "block" {
				t.Errorf("%s: live %v, queue %+v", name, p.Source.Live, p.Queue)
			}
		}
	}
}
