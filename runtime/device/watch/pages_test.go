package watch

import (
	"slices"
	"testing"
)

func TestOnlyCleanPagesAreDropped(t *testing.T) {
	const head = " 00000000 fd:00 42                          "
	smaps := "00400000-00800000 r-xp" + head + "/usr/bin/yoctuned\nRss: 400 kB\nAnonymous:             0 kB\n" +
		"00800000-00900000 r--p" + head + "/usr/bin/yoctuned\nAnonymous:             8 kB\n" + // relocations
		"00900000-00a00000 rw-p" + head + "/usr/bin/yoctuned\nAnonymous:             0 kB\n" +
		"7f000000-7f100000 r-xp" + head + "/lib/libc.so.6\nAnonymous:             0 kB\n" +
		"7f200000-7f300000 r--p 00000000 00:00 0 \nAnonymous:             0 kB\n" +
		"nonsense r-xp" + head + "/usr/bin/yoctuned\nAnonymous:             0 kB\n"
	if got, want := cleanMappings(smaps, "/usr/bin/yoctuned"), []mapping{{0x400000, 0x800000}}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	dropCleanPages() // must not crash this program
	dropCleanPages()
}
