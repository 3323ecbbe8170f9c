package firstrack

import (
	"errors"
	"fmt"
	"strings"
)

// The fences of what is typed into a shell. Other blocks, such as those that are indented, are
// not.
const (
	opening = "```sh"
	closing = "```"
)

// Commands returns the commands of a page in Markdown: each is a fenced block of its own.
func Commands(page string) (all []string, err error) {
	for rest := page; ; {
		_, after, found := strings.Cut(rest, opening+"\n")
		if !found {
			break
		}
		command, after, found := strings.Cut(after, "\n"+closing+"\n")
		if !found {
			return nil, errors.New("a block is not closed")
		}
		if err := isOne(command); err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		all, rest = append(all, command), after
	}
	if len(all) == 0 {
		return nil, errors.New("there is no command")
	}
	return all, nil
}

// isOne checks whether a block is one command, so that the number of blocks is that of the
// commands: a line, and the document that it reads, if any.
func isOne(block string) error {
	line, document, _ := strings.Cut(block, "\n")
	_, word, reads := strings.Cut(line, "<<")
	word = strings.Trim(word, "'")
	switch {
	case reads && !strings.HasSuffix(document, "\n"+word):
		return errors.New("more than one command: there is something behind the document")
	case !reads && document != "":
		return errors.New("more than one command: there are several lines")
	case strings.Contains(line, "&&"), strings.Contains(line, "|"):
		return errors.New("more than one command in a line")
	}
	return nil
}
