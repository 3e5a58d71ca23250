package cpulist_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/yoctune/yoctune/schema/formats/cpulist"
)

func TestKernelCPUListsAreParsed(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, "\n": nil, "0\n": {0}, "0-3,5": {0, 1, 2, 3, 5}, "5,0-1,1": {0, 1, 5}, "0-7:2/4": {0, 1, 4, 5}, "0-3:1/2,9": {0, 2, 9},
	} {
		if got, err := cpulist.Parse(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{"-", "a", "3-1", "0-", "-1", "0,,1", "8192", "0-8192", "0-7:2", "0-7:0/2", "0-7:3/2", "1:1/2", "+1", "0x1", "1_0", "99999999999999999999"} {
		if got, err := cpulist.Parse(bad); !errors.Is(err, cpulist.ErrList) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func TestCPUListsAreWrittenAsTheKernelDoes(t *testing.T) {
	for want, cpus := range map[string][]int{"": nil, "0": {0}, "0-3,5": {0, 1, 2, 3, 5}, "4-5": {4, 5}, "1,3,5": {1, 3, 5}} {
		if got := cpulist.Format(cpus); got != want {
			t.Errorf("%v: %q, want %q", cpus, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0-7:2/4,9")
	f.Add(strings.Repeat("0-8191,", 100) + "1")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := cpulist.Parse(text)
		if err != nil && (got != nil || !errors.Is(err, cpulist.ErrList)) {
			t.Fatal(got, err)
		}
		if len(got) > cpulist.Max || !slices.IsSorted(got) {
			t.Fatalf("%d processors", len(got))
		}
		if again, err := cpulist.Parse(cpulist.Format(got)); err != nil || !slices.Equal(again, got) {
			t.Fatalf("%v is written as %s", got, cpulist.Format(got))
		}
	})
}
