// Package inference answers requests in the Open Inference Protocol v2, which clients of KServe and
// Triton speak. [Server] is the protocol without a transport: it compares a request with what the
// pipeline takes, runs it, and returns the answer or an [Error] of one of a few kinds. Each transport has
// a file of its own.
//
// Values of one caller never reach another: names, types, shapes and byte counts of every input are
// compared before the pipeline sees the request, and no buffer is used twice.
package inference
