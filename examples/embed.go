// Package examples holds what a newcomer copies: a repository to start from, the
// daemon's configuration with every default, and a systemd unit.
package examples

import "embed"

// Quickstart is a repository to start from, below quickstart/. The demo makes its
// repository of it and of the manifests of its simulated rack.
//
//go:embed quickstart
var Quickstart embed.FS
