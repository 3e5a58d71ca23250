// Package cluster delivers results over NATS JetStream.
//
// One server runs on each device that has a cluster, in a process of its own: see [Start]. Pipelines put batches of
// results into its streams through a unix socket: see [Open]. Where the cluster is elsewhere, a [Forwarder] moves
// each stream to it, and what the cluster has stored is removed here.
//
// Results have numbers that count on when a pipeline starts again. A batch is published with the sequence that its
// subject had before, so that the server refuses a batch that it has: delivery is exactly once and in order, whatever
// time passes between two attempts.
package cluster
