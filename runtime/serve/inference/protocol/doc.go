// Package protocol is the Open Inference Protocol v2 as generated from inference.proto.
package protocol

//go:generate sh generate.sh
