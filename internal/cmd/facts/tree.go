package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// readFiles returns the text of the files at a commit that keep accepts, by path.
func (r repository) readFiles(commit string, keep func(name string) bool) (map[string]string, error) {
	list, err := r.git("ls-tree", "-r", "--name-only", "-z", commit)
	if err != nil {
		return nil, err
	}
	var names []string
	var ask bytes.Buffer
	for name := range strings.SplitSeq(list, "\x00") {
		if name != "" && keep(name) {
			names = append(names, name)
			fmt.Fprintf(&ask, "%s:%s\n", commit, name)
		}
	}
	cmd := exec.Command("git", "-C", string(r), "cat-file", "--batch")
	cmd.Stdin = &ask
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	files := make(map[string]string, len(names))
	answer := bufio.NewReader(bytes.NewReader(out))
	for _, name := range names {
		header, err := answer.ReadString('\n')
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(header)
		if len(fields) != 3 || fields[1] != "blob" {
			continue // a submodule, or a file that the copy lacks
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+1)
		if _, err := io.ReadFull(answer, text); err != nil {
			return nil, err
		}
		files[name] = string(text[:size])
	}
	return files, nil
}
