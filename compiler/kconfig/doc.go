// Package kconfig predicts which requested options a kernel build will keep.
//
// It reads the Kconfig files of a kernel tree into facts ([Index]), evaluates a
// base configuration and the fragments on top of it as merge_config.sh and
// `conf --alldefconfig` do, and explains every requested symbol: kept, changed
// or lost, the chain of conditions that decided it, and the lines that would
// make the request hold.
package kconfig
