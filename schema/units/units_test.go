package units

import (
	"errors"
	"math"
	"testing"
)

func TestQuantitiesAreParsedExactly(t *testing.T) {
	for _, c := range []struct {
		parse func(string) (int64, error)
		text  string
		want  int64
	}{
		{ParseFrequency, "918MHz", 918e6}, {ParseFrequency, "1.4208GHz", 1420800000}, {ParseFrequency, "7Hz", 7},
		{ParseSize, "2GiB", 2 << 30}, {ParseSize, "1.5KiB", 1536}, {ParseSize, "20MB", 20e6}, {ParseSize, "5B", 5},
		{ParseRate, "100Mbit/s", 12500000}, {ParseRate, "20MB/s", 20e6}, {ParseRate, "1MiB/s", 1 << 20},
		{ParseDuration, "5ms", 5e6}, {ParseDuration, "2min", 120e9}, {ParseDuration, "1.5s", 1500e6}, {ParseDuration, "3ns", 3},
	} {
		if got, err := c.parse(c.text); err != nil || got != c.want {
			t.Errorf("%s is %d, %v, want %d", c.text, got, err, c.want)
		}
	}
	for _, c := range []struct {
		parse func(string) (int64, error)
		text  string
	}{
		{ParseFrequency, "918"}, {ParseFrequency, "9e18GHz"}, {ParseFrequency, "GHz"}, {ParseSize, "2GHz"}, {ParseSize, "MiB"},
		{ParseRate, "20MB"}, {ParseRate, "5Mbit"}, {ParseDuration, "5"}, {ParseDuration, ""},
	} {
		if got, err := c.parse(c.text); err == nil {
			t.Errorf("%q is accepted as %d", c.text, got)
		}
	}
	for _, text := range []string{"0.1Hz", "1.0000000001GHz"} {
		if _, err := ParseFrequency(text); !errors.Is(err, ErrInexact) {
			t.Errorf("%s: %v, want ErrInexact", text, err)
		}
	}
}

func TestQuantitiesRoundTrip(t *testing.T) {
	for _, n := range []int64{0, 1, 999, 1000, 1023, 1024, 1536, 1 << 20, 3 << 29, 1420800000, 306000000, 1 << 41, math.MaxInt64} {
		if got, err := ParseSize(Size(n)); err != nil || got != n {
			t.Errorf("%d bytes are printed as %s, which is %d, %v", n, Size(n), got, err)
		}
		if got, err := ParseFrequency(Frequency(n)); err != nil || got != n {
			t.Errorf("%d Hz are printed as %s, which is %d, %v", n, Frequency(n), got, err)
		}
	}
}

func TestDisplayedQuantitiesAreRounded(t *testing.T) {
	for got, want := range map[string]string{
		SpaceUnit(Size(1536 << 20)):      "1536 MiB",
		SpaceUnit(Frequency(1420800000)): "1.4208 GHz",
		SpaceUnit(Size(0)):               "0 B",
		RoundFrequency(1420800000):       "1.42 GHz",
		RoundFrequency(918600000):        "919 MHz",
		RoundSize(1536 << 20):            "1.5 GiB",
		RoundSize(12<<20 + 5):            "12 MiB",
		RoundSize(7 << 10):               "7 KiB",
		RoundSize(812):                   "812 B",
		RoundDecimal(12_500_000):         "12.5 MB",
		RoundDecimal(999):                "999 B",
		RoundDecimal(2.5e12):             "2500 GB",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
