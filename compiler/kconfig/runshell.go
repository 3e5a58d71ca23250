package kconfig

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// RunShell answers $(shell,…) by running the command in dir with env, as the
// kernel's own build does. It executes commands from the tree: use it only for trees that
// would be built anyway. The timeout is ten seconds a command.
func RunShell(dir string, env map[string]string) Shell {
	vars := os.Environ()
	for k, v := range env {
		vars = append(vars, k+"="+v)
	}
	return func(command string) string {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = vars
		// The exit code is not looked at, as in the real program.
		out, _ := cmd.Output()
		return string(out)
	}
}
