// Package worker lets another process work on a device, so that what kills or
// hangs a GPU does not take this program along: an illegal address, a lost device
// or a launch that never ends spoils the driver's state for the process until it
// ends. This process never opens the device.
//
// A [Client] starts the program again as its worker. The two share two pieces of
// memory: one for frames and tensors, which the worker registers with its device, and
// one with a lane for each caller, through which one message goes at a time: a list of
// commands ([core.Draft]) or a run of a model. A message costs two futex wakes and no
// copy of what it is about.
//
//	c, err := worker.New(worker.Options{Bytes: 64 << 20, Lanes: 1})
//	list := c.Draft().List().Preprocess(c.Region(in, n), planes, &p)
//	err = c.Run(0, list, 50*time.Millisecond)
//	if worker.Elsewhere(err) {
//		// the device is not to be had: do it on the CPU
//	}
//
// A worker that does not answer in time is given up at once: Run returns, and the
// kill, the wait for its end and the next start happen beside the caller. Until the
// next worker is ready, and has been tried, Run returns [ErrUnavailable] without
// waiting. The breaker (see [Backoff]) makes each start in a row wait longer, and after
// too many there is none any more.
//
// The parent trusts nothing that a worker writes. It copies each answer once, checks the
// copy, and kills a worker whose answer is malformed. A worker that was given up may still
// write to the shared memory until it is reaped, and no other worker starts before that.
// Until the next worker is ready the caller must not reuse the memory that the lost call
// named.
package worker
