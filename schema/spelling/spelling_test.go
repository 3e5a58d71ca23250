package spelling

import "testing"

func TestNearest(t *testing.T) {
	commands := []string{"build", "vet", "fmt", "diff", "version", "mq-deadline"}
	for word, want := range map[string]string{
		"vt":       "vet",
		"bild":     "build",
		"biuld":    "build", // neighbours swapped
		"VET":      "vet",
		"versoin":  "version",
		"deadline": "mq-deadline",
		"xyz":      "",
		"":         "",
	} {
		if got := Nearest(word, commands); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestDistanceCountsASwapOfNeighboursOnce(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"Käse", "kase", 1}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestASlipIsNotAnotherNameOfTheSameKind(t *testing.T) {
	const letters = 10
	for _, c := range []struct {
		name, known string
		want        bool
	}{
		{"vimm", "vim", true}, {"bahs", "bash", true}, {"webkitgtkk", "webkitgtk", true},
		{"networkmanger", "networkmanager", true}, {"libm", "libmm", true},
		{"iperf", "gperf", false}, {"mc-utils", "mmc-utils", false}, {"python3-scipy", "python3-scapy", false}, {"snapshot", "rsnapshot", false},
		{"vpi3-tests", "vpi4-tests", false}, {"deepstream-9.1", "deepstream-7.1", false}, {"vim", "vim", false},
		{"networkmanag", "networkmanager", false},
	} {
		if got := IsSlip(c.name, c.known, letters); got != c.want {
			t.Errorf("%s for %s: %v", c.name, c.known, got)
		}
	}
	if !IsSlip("XTRA_IMAGE_FEATURES", "EXTRA_IMAGE_FEATURES", 5) || IsSlip("DATEH", "DATE", 5) {
		t.Error("variables have words of five letters and more")
	}
}

func FuzzDistanceWithin(f *testing.F) {
	f.Add("evt", "vet", 2)
	f.Fuzz(func(t *testing.T, a, b string, limit int) {
		if len(a) > 50 || len(b) > 50 {
			return
		}
		limit &= 63
		there, back, all := DistanceWithin(a, b, limit), DistanceWithin(b, a, limit), DistanceWithin(a, b, 100)
		if there != back || there != min(all, limit+1) || (all == 0) != (a == b) {
			t.Errorf("%q %q within %d: %d, the other way %d, without limit %d", a, b, limit, there, back, all)
		}
	})
}
