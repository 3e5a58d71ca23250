// Package version holds the one version both programs, the layer's recipes and
// the release archives carry.
package version

// Version is the release, in semantic versioning. Of a program that is built at the tag of a
// release, internal/cmd/dist and the Makefile set it through the linker.
var Version = "0.2.0-dev"
