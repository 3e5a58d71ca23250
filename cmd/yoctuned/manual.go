//go:build manual

package main

import "github.com/yoctune/yoctune/internal/cli/manual"

func main() { manual.Main(newRootCommand()) }
