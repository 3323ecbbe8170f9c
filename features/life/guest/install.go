package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/coreos/ignition/v2/config"
	"golang.org/x/sys/unix"

	"ingot/features/life"
)

// bootStateFile names where to report that the machine is up: a URL and its UUID.
const bootStateFile = "/etc/ingot/bootstate"

// install does with the machine what its Ignition says, and puts the disk image that
// belongs to it on the disk.
func install(d disk, ignition, image string) error {
	files, err := readIgnition(ignition)
	if err != nil {
		return err
	}
	if err := d.write(image); err != nil {
		return err
	}
	told := files[bootStateFile]
	delete(files, bootStateFile) // as the unit does that Ignition would have made
	made := life.Installation{ID: rand.Text(), Files: files}
	if err := d.open(func(f *os.File) error { return made.Save(f) }); err != nil {
		return err
	}
	return reportUp(told)
}

// readIgnition fetches an Ignition, has Ignition's own parser check it, and returns
// its files.
func readIgnition(from string) (files map[string]string, err error) {
	var raw []byte
	err = within("fetch the Ignition", func() error {
		body, err := fetch(from)
		if err != nil {
			return err
		}
		defer body.Close()
		raw, err = io.ReadAll(body)
		return err
	})
	if err != nil {
		return nil, err
	}
	c, report, err := config.Parse(raw)
	if err != nil || report.IsFatal() {
		return nil, fmt.Errorf("the Ignition is wrong: %w: %s", err, report.String())
	}
	files = make(map[string]string)
	for _, f := range c.Storage.Files {
		if files[f.Path], err = content(f.Contents.Source); err != nil {
			return nil, fmt.Errorf("%s of the Ignition: %w", f.Path, err)
		}
	}
	return files, nil
}

// content is what a data URL holds (RFC 2397).
func content(source *string) (string, error) {
	if source == nil {
		return "", nil
	}
	text, ok := strings.CutPrefix(*source, "data:,")
	if !ok {
		return "", errors.New("only plain data URLs are read here")
	}
	return url.PathUnescape(text)
}

func fetch(from string) (io.ReadCloser, error) {
	answer, err := http.Get(from)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, errors.New(answer.Status)
	}
	return answer.Body, nil
}

func reportUp(told string) error {
	where, uuid, ok := strings.Cut(strings.TrimSpace(told), " ")
	if own := line("/sys/class/dmi/id/product_uuid"); !ok || !strings.EqualFold(uuid, own) {
		return fmt.Errorf("the Ignition is for machine %q, and this is %s", uuid, own)
	}
	return within("report the machine up", func() error {
		_, err := post(where, map[string]any{"systemUUID": uuid, "booted": true})
		return err
	})
}

func post(to string, document any) (string, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return "", err
	}
	answer, err := http.Post(to, "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		err = errors.New(answer.Status)
	}
	return string(text), err
}

// disk is the path of a whole disk.
type disk string

func (d disk) write(image string) error {
	body, err := fetch(image)
	if err != nil {
		return fmt.Errorf("fetch the disk image: %w", err)
	}
	defer body.Close()
	to, err := os.OpenFile(string(d), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, body, make([]byte, 1<<20))
	return errors.Join(err, to.Sync(), to.Close())
}

func (d disk) open(do func(*os.File) error) error {
	f, err := os.OpenFile(string(d), os.O_RDWR|unix.O_SYNC, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}
