package main

import (
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = ""

type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(c *console) error {
	b := thisBuild()
	if c.json() {
		return c.printJSON(b)
	}
	c.printf("ingot %s", b.Version)
	if b.Commit != "" {
		c.printf(" (commit %.12s%s)", b.Commit, map[bool]string{true: ", modified"}[b.Modified])
	}
	c.printf(", %s, %s\n", b.Go, b.Platform)
	return nil
}

// thisBuild reads what the linker and the go command noted.
func thisBuild() build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
