package sim

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
)

// Bounds on an Ignition configuration.
const (
	maxIgnition = 4 << 20 // bytes, of one document or file in it
	maxMerges   = 8       // documents that one document draws in
	maxIncluded = 3       // depth
)

// bootStateFile is where an installed system finds whom to tell that it is up:
// one line with URL and UUID.
const bootStateFile = "/etc/ingot/bootstate"

// ignition is the part of a configuration (specification 3.x) that a simulated
// machine heeds.
type ignition struct {
	Ignition struct {
		Version string `json:"version"`
		Config  struct {
			Merge   []resourceRef `json:"merge"`
			Replace resourceRef   `json:"replace"`
		} `json:"config"`
	} `json:"ignition"`
	Systemd struct {
		Units []unit `json:"units"`
	} `json:"systemd"`
	Storage struct {
		Files []file `json:"files"`
	} `json:"storage"`
}

type unit struct {
	Name     string `json:"name"`
	Contents string `json:"contents"`
	Dropins  []struct {
		Contents string `json:"contents"`
	} `json:"dropins"`
}

type file struct {
	Path     string        `json:"path"`
	Contents resourceRef   `json:"contents"`
	Append   []resourceRef `json:"append"`
}

// resourceRef is something to be fetched.
type resourceRef struct {
	Source      string `json:"source"`
	Compression string `json:"compression"`
}

// program is what a booted machine does, as its Ignition has it.
type program struct {
	probe     *probeRun // nil for an operating system
	bootState *bootStateRun
}

// probeRun is the command line of a metalprobe.
type probeRun struct {
	registryURL string
	serverUUID  string
	wipe        string // "" outside cleanup
	install     string // where its install document is, "" outside installs
	reportURL   string
}

// bootStateRun is where an installed system says that it is up, and as whom.
type bootStateRun struct {
	url  string
	uuid string
	// cloudInit has it also say how cloud-init ended.
	cloudInit bool
}

// parseIgnition decodes a configuration. fetch gets what a configuration draws in
// by URL.
func parseIgnition(ctx context.Context, raw []byte, fetch func(context.Context, string) ([]byte, error)) (*ignition, error) {
	return ignitionReader{fetch: fetch}.read(ctx, raw, 0)
}

type ignitionReader struct {
	fetch func(context.Context, string) ([]byte, error)
}

func (r ignitionReader) read(ctx context.Context, raw []byte, depth int) (*ignition, error) {
	var c ignition
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("ignition: %w", err)
	}
	if !strings.HasPrefix(c.Ignition.Version, "3.") {
		return nil, fmt.Errorf("ignition: version %q: want 3.x", c.Ignition.Version)
	}
	included := c.Ignition.Config.Merge
	if replace := c.Ignition.Config.Replace; replace.Source != "" {
		return r.include(ctx, replace, depth)
	}
	if len(included) > maxMerges {
		return nil, fmt.Errorf("ignition: %d configurations to merge: at most %d", len(included), maxMerges)
	}
	for _, m := range included {
		other, err := r.include(ctx, m, depth)
		if err != nil {
			return nil, err
		}
		c.Systemd.Units = append(c.Systemd.Units, other.Systemd.Units...)
		c.Storage.Files = append(c.Storage.Files, other.Storage.Files...)
	}
	return &c, nil
}

func (r ignitionReader) include(ctx context.Context, ref resourceRef, depth int) (*ignition, error) {
	if depth >= maxIncluded {
		return nil, fmt.Errorf("ignition: configurations include one another more than %d deep", maxIncluded)
	}
	raw, err := ref.read(ctx, r.fetch)
	if err != nil {
		return nil, err
	}
	return r.read(ctx, raw, depth+1)
}

func (ref resourceRef) read(ctx context.Context, fetch func(context.Context, string) ([]byte, error)) ([]byte, error) {
	var raw []byte
	var err error
	switch {
	case ref.Source == "":
		return nil, nil
	case strings.HasPrefix(ref.Source, "data:"):
		raw, err = decodeDataURL(ref.Source)
	default:
		raw, err = fetch(ctx, ref.Source)
	}
	if err != nil {
		return nil, err
	}
	if ref.Compression != "gzip" {
		return raw, nil
	}
	return gunzip(raw)
}

// decodeDataURL returns the data of a URL after RFC 2397.
func decodeDataURL(s string) ([]byte, error) {
	head, data, ok := strings.Cut(strings.TrimPrefix(s, "data:"), ",")
	if !ok {
		return nil, errors.New("ignition: a data URL has no comma")
	}
	text, err := url.PathUnescape(data)
	if err != nil {
		return nil, errors.New("ignition: a data URL is not escaped correctly")
	}
	if !strings.HasSuffix(head, ";base64") {
		return []byte(text), nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("ignition: a data URL is not base64")
	}
	return raw, nil
}

func gunzip(raw []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("ignition: compressed contents: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxIgnition+1))
	if err != nil {
		return nil, fmt.Errorf("ignition: compressed contents: %w", err)
	}
	if len(plain) > maxIgnition {
		return nil, fmt.Errorf("ignition: contents of more than %d bytes", maxIgnition)
	}
	return plain, nil
}

// program reads out of the configuration what the machine is to do.
func (c *ignition) program(ctx context.Context, fetch func(context.Context, string) ([]byte, error)) (program, error) {
	var p program
	texts := c.unitTexts()
	for _, f := range c.Storage.Files {
		// Only files that are there already are looked into: what a real machine
		// would fetch for its user is no concern of the rack.
		text, err := f.inline(ctx, fetch)
		if err != nil {
			return program{}, fmt.Errorf("%s: %w", f.Path, err)
		}
		if f.Path == bootStateFile {
			p.bootState = parseBootState(text)
			continue
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		if p.probe = findProbe(text); p.probe != nil {
			return p, nil
		}
	}
	return p, nil
}

func (c *ignition) unitTexts() []string {
	var texts []string
	for _, u := range c.Systemd.Units {
		texts = append(texts, u.Contents)
		for _, d := range u.Dropins {
			texts = append(texts, d.Contents)
		}
	}
	return texts
}

// inline returns the contents of a file that stand in the configuration itself.
func (f file) inline(ctx context.Context, fetch func(context.Context, string) ([]byte, error)) (string, error) {
	var b strings.Builder
	for _, ref := range append([]resourceRef{f.Contents}, f.Append...) {
		if !strings.HasPrefix(ref.Source, "data:") {
			continue
		}
		raw, err := ref.read(ctx, fetch)
		if err != nil {
			return "", err
		}
		b.Write(raw)
	}
	return b.String(), nil
}

func parseBootState(text string) *bootStateRun {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return nil
	}
	return &bootStateRun{url: fields[0], uuid: fields[1]}
}

// flagPattern finds flags of metalprobe in a command line of any form.
var flagPattern = regexp.MustCompile(`--?(registry-url|server-uuid|wipe|report-url|install)[= ]["']?([^\s"'\\]+)`)

// findProbe returns the command line of the metalprobe that text runs, or nil.
func findProbe(text string) *probeRun {
	if !strings.Contains(text, "metalprobe") {
		return nil
	}
	var p probeRun
	for _, flag := range flagPattern.FindAllStringSubmatch(text, -1) {
		switch flag[1] {
		case "registry-url":
			p.registryURL = strings.TrimSuffix(flag[2], "/")
		case "server-uuid":
			p.serverUUID = flag[2]
		case "wipe":
			p.wipe = flag[2]
		case "report-url":
			p.reportURL = flag[2]
		case "install":
			p.install = flag[2]
		}
	}
	if p.registryURL == "" {
		return nil
	}
	return &p
}
