// Package live is what a running pipeline says of itself, to whoever asks: the
// fates of its frames, how long they waited and took, queues, the level of its
// ladder, and what its stages count for themselves. `pipeline top` and Prometheus
// read it. A pipeline that nobody asks does nothing for it.
package live
