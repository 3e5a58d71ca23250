// Package live publishes the state of a running pipeline: frames by outcome, waiting and
// processing times, queues, the level of the ladder, and metrics of stages. `pipeline top` and
// Prometheus read it. It costs nothing while there are no readers.
package live
