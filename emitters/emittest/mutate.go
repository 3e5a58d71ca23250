package emittest

import (
	"math/rand/v2"
	"strings"
)

// Mutate returns n of the seeds, each with a few lines dropped, doubled, swapped or
// damaged. The same arguments give the same texts.
func Mutate(n int, seeds, damage []string) []string {
	random := rand.New(rand.NewPCG(1, 2))
	out := make([]string, n)
	for k := range out {
		lines := strings.SplitAfter(seeds[random.IntN(len(seeds))], "\n")
		for range 1 + random.IntN(3) {
			i, j := random.IntN(len(lines)), random.IntN(len(lines))
			switch random.IntN(5) {
			case 0:
				lines[i] = ""
			case 1:
				lines[i] += lines[j]
			case 2:
				lines[i], lines[j] = lines[j], lines[i]
			case 3:
				at := random.IntN(len(lines[i]) + 1)
				lines[i] = lines[i][:at] + damage[random.IntN(len(damage))] + lines[i][at:]
			case 4:
				if n := len(lines[i]); n > 0 {
					at := random.IntN(n)
					lines[i] = lines[i][:at] + lines[i][at+1:]
				}
			}
		}
		out[k] = strings.Join(lines, "")
	}
	return out
}
