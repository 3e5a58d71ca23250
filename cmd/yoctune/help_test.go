package main

import (
	"testing"

	"github.com/yoctune/yoctune/internal/cli/clitest"
)

func TestEveryCommandHasHelpAndExamplesThatItAccepts(t *testing.T) {
	clitest.CheckHelp(t, newRootCommand)
}
