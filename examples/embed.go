// Package examples holds what a newcomer copies: a repository to start from, the
// daemon's configuration with every default, a systemd unit, checks of pull requests, and
// the JSON Schemas of manifests.
package examples

import "embed"

// Quickstart is a repository to start from, below quickstart/. "ingot init" copies it. The demo
// makes its repository of it and of the manifests of its simulated rack.
//
//go:embed all:quickstart
var Quickstart embed.FS

// Init is what "ingot init" adds to it, below init/: who owns what, and the configuration of Ingot.
//
//go:embed init
var Init embed.FS

// CI are the checks of pull requests, below ci/: one file for each forge.
//
//go:embed ci
var CI embed.FS

// Schemas are the JSON Schemas of the kinds, below schemas/: one of each, and all.json of
// whatever a file may hold. The tests of model make them.
//
//go:embed schemas
var Schemas embed.FS
