// Package worker runs device work in another process. An illegal address, a lost device or
// an endless launch breaks the driver's state for the whole process until it exits. The
// parent never opens the device, so it survives such faults.
//
// A [Client] starts its own program again as the worker. Parent and worker share two pieces
// of memory: one for frames and tensors, which the worker registers with its device, and
// one with a lane per caller. A lane carries one message at a time: a list of commands
// ([core.Draft]) or a run of a model. A message costs two futex wakes; frames are not
// copied.
//
//	c, err := worker.New(worker.Options{Bytes: 64 << 20, Lanes: 1})
//	list := c.Draft().List().Preprocess(c.Region(in, n), planes, &p)
//	err = c.Run(0, list, 50*time.Millisecond)
//	if worker.IsWorkerFault(err) {
//		// the device is not available: use the CPU
//	}
//
// A worker that does not answer in time is given up at once. Run returns; killing the
// worker, waiting for its end and starting the next one happen in the background. Until the
// next worker is ready and has passed its trial, Run returns [ErrUnavailable] immediately.
// A circuit breaker (see [Backoff]) delays consecutive starts and stops after too many.
//
// The parent trusts nothing that a worker writes. It copies each answer once, checks the
// copy, and kills a worker whose answer is malformed. A worker that was given up may still
// write to the shared memory until it is reaped, and no other worker starts before that.
// Until the next worker is ready the caller must not reuse the memory that the lost call
// named.
package worker
