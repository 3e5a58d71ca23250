package system

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/facts/release"
)

func TestEveryReleaseHasSystemdAndItsAccounts(t *testing.T) {
	for _, rel := range release.Names() {
		if len(Sources(rel)) != 5 {
			t.Errorf("%s: sources %v", rel, Sources(rel))
		}
		for name, want := range map[string]string{
			"getty@tty1.service": "systemd", "sshd.socket": "openssh", "network-online.target": "systemd", "fstrim.timer": "util-linux-fstrim",
		} {
			if from, ok := FindUnit(rel, name); !ok || !strings.HasPrefix(from.Package, want) {
				t.Errorf("%s: %s comes from %+v, %v; want %s", rel, name, from, ok, want)
			}
		}
		for name, kind := range map[string]Kind{"root": User, "messagebus": User, "systemd-network": User, "video": Group, "systemd-journal": Group} {
			if from, ok := Find(rel, kind, name); !ok || !from.IsAlwaysThere() {
				t.Errorf("%s: %s %s comes from %+v, %v", rel, kind, name, from, ok)
			}
		}
		// The PACKAGECONFIG of systemd lacks oomd; that of openssh has one of its two modes since
		// scarthgap, and before that installs no sshd.service.
		if from, ok := FindUnit(rel, "systemd-oomd.service"); !ok || !slices.Equal(from.Missing(), []string{"oomd"}) || from.Recipe != "systemd" {
			t.Errorf("%s: systemd-oomd comes from %+v", rel, from)
		}
		from, ok := FindUnit(rel, "sshd.service")
		if hasModes := !strings.HasPrefix(rel, "kirkstone"); ok != hasModes || ok && !slices.Equal(from.Missing(), []string{"systemd-sshd-service-mode"}) {
			t.Errorf("%s: sshd.service comes from %+v, %v", rel, from, ok)
		}
		if from, ok := FindUnit(rel, "sshd@.service"); !ok || len(from.Missing()) > 0 {
			t.Errorf("%s: sshd@.service comes from %+v, %v", rel, from, ok)
		}
	}
}

// A name with a letter too few, too many, wrong or moved does not exist; most lead to the name.
func TestMistypedNamesAreFlagged(t *testing.T) {
	const rel, least = "scarthgap", 95
	random := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []Kind{Unit, User, Group} {
		tried, exist, led := 0, 0, 0
		for name := range Names(rel, kind) {
			if _, ok := Find(rel, kind, name); !ok {
				t.Errorf("%s %s is refused", kind, name)
			}
			for range 2 {
				wrong := mistype(random, strings.TrimSuffix(name, path.Ext(name))) + path.Ext(name)
				if wrong == name {
					continue
				}
				tried++
				if _, ok := FindUnit(rel, wrong); ok && kind == Unit {
					exist++
				} else if _, ok := Find(rel, kind, wrong); ok {
					exist++
				} else if Nearest(rel, kind, wrong) != "" {
					led++
				}
			}
		}
		t.Logf("%d mistyped %ss: %d exist, %d lead to a name, %d are unknown", tried, kind, exist, led, tried-exist-led)
		if 100*(tried-exist) < least*tried {
			t.Errorf("%d of %d mistyped %ss pass", exist, tried, kind)
		}
	}
}

// mistype changes one letter of a name.
func mistype(random *rand.Rand, name string) string {
	letters := []byte(name)
	i := random.IntN(len(letters))
	switch random.IntN(4) {
	case 0:
		if len(letters) > 1 {
			return string(append(letters[:i:i], letters[i+1:]...))
		}
	case 1:
		return string(letters[:i]) + string(rune('a'+random.IntN(26))) + string(letters[i:])
	case 2:
		if i+1 < len(letters) {
			letters[i], letters[i+1] = letters[i+1], letters[i]
		}
	default:
		letters[i] = byte('a' + random.IntN(26))
	}
	return string(letters)
}
