// Package monitor measures a device: loads, clocks, power, temperatures, fans, memory and
// throttling.
//
// A [Sampler] reads files and starts no processes. Unknown values are nil in the [Sample] and
// never 0: a missing rail, a clock that only root may read, a sensor that hangs. Each sensor
// behind a bus or firmware is read in a goroutine of its own, with a timeout, and is not read
// again before it has answered. A sensor that hangs costs one thread and does not affect
// other readings.
//
// A [Hub] shares samples among its watchers and takes none without watchers. Times are
// CLOCK_BOOTTIME, which counts during suspend and is never set. The wall clock is only
// displayed.
package monitor
