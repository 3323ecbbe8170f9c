// Package smallfile reads files that people name in a configuration: keys, passwords and
// certificates. One that is too large is most likely another file, or one without an end.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read reads a file of at most so many bytes. Its error is an *fs.PathError.
func Read(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing is lost
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it is larger than %d bytes; is it the right file?", most)}
	}
	return content, err
}

// Cause is an error of Read without the name of the file, for those who name it themselves.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
