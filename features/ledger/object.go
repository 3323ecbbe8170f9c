package ledger

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// objects reads the objects of a repository with git itself, one process for many. It is
// started by the first read.
type objects struct {
	dir     string
	git     *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Reader
	errors  bytes.Buffer // what git says of its own
}

func (o *objects) read(hash string) ([]byte, error) {
	if err := o.begin(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(o.ask, hash); err != nil {
		return nil, fmt.Errorf("ask git for %s: %w", hash, err)
	}
	header, err := o.answers.ReadString('\n') // <hash> <type> <size>
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", hash, err)
	}
	fields := strings.Fields(header)
	size, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return nil, fmt.Errorf("git says %q of an object", header)
	}
	data := make([]byte, size+1) // and the newline after it
	if _, err := io.ReadFull(o.answers, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", hash, err)
	}
	return data[:size], nil
}

func (o *objects) begin() error {
	if o.git != nil {
		return nil
	}
	git := exec.Command("git", "-C", o.dir, "cat-file", "--batch")
	ask, err := git.StdinPipe()
	if err != nil {
		return err
	}
	answers, err := git.StdoutPipe()
	if err != nil {
		return err
	}
	o.errors.Reset()
	git.Stderr = &o.errors
	if err := git.Start(); err != nil {
		return fmt.Errorf("start git: %w", err)
	}
	o.git, o.ask, o.answers = git, ask, bufio.NewReader(answers)
	return nil
}

// close ends git. What is read after it starts another.
func (o *objects) close() error {
	if o.git == nil {
		return nil
	}
	err := o.ask.Close()
	if ended := o.git.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("git cat-file: %w: %s", ended, strings.TrimSpace(o.errors.String())))
	}
	o.git = nil
	return err
}

type commit struct {
	tree    string
	parents []string
	message string
}

func (r *Reader) commit(hash string) (*commit, error) {
	if c := r.commits[hash]; c != nil {
		return c, nil
	}
	data, err := r.objects.read(hash)
	if err != nil {
		return nil, err
	}
	var c commit
	header, message, _ := strings.Cut(string(data), "\n\n")
	c.message = message
	for line := range strings.Lines(header) {
		switch key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); key {
		case "tree":
			c.tree = value
		case "parent":
			c.parents = append(c.parents, value)
		}
	}
	r.commits[hash] = &c
	return &c, nil
}

func (c *commit) approves() bool {
	for line := range strings.Lines(c.message) {
		if token, ok := strings.CutPrefix(line, "Ingot-Approve:"); ok && strings.TrimSpace(token) != "" {
			return true
		}
	}
	return false
}

// entry is a file or a folder in a tree.
type entry struct{ mode, name, hash string }

// Modes of entries that are no files.
const (
	modeTree      = "40000"
	modeSubmodule = "160000"
)

// tree reads a folder: in the object, modes, names and binary hashes follow each other.
func (r *Reader) tree(hash string) ([]entry, error) {
	if all, known := r.trees[hash]; known {
		return all, nil
	}
	data, err := r.objects.read(hash)
	if err != nil {
		return nil, err
	}
	var all []entry
	for rest := string(data); rest != ""; {
		head, tail, ok := strings.Cut(rest, "\x00")
		mode, name, named := strings.Cut(head, " ")
		size := len(hash) / 2
		if !ok || !named || len(tail) < size {
			return nil, fmt.Errorf("tree %s is damaged", hash)
		}
		all = append(all, entry{mode, name, hex.EncodeToString([]byte(tail[:size]))})
		rest = tail[size:]
	}
	r.trees[hash] = all
	return all, nil
}
