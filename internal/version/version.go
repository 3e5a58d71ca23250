// Package version holds the one version both programs, the layer's recipes and
// the release archives carry.
package version

// Version is the release, in semantic versioning.
const Version = "0.1.0"
