// Package monitor measures a device: loads, clocks, power, temperatures, fans,
// memory and what holds it back.
//
// A [Sampler] reads files and starts no process. What it cannot learn is nil in
// the [Sample], never 0: a rail that is not there, a clock that only root may see
// and a sensor that hangs are all unknown. Each sensor behind a bus or firmware
// is read by its own goroutine, with a deadline, and is not asked again before it
// has answered, so one that blocks for ever costs one thread and its own value.
//
// A [Hub] samples only while somebody watches, once for all of them. Times are
// from the clock that runs through suspend and is never set (CLOCK_BOOTTIME); the
// wall clock is only shown to people.
package monitor
