package rig

import (
	"fmt"
	"testing"
)

// The link that Ingot and the rack's machines are on.
const (
	ServerAddress  = "10.77.1.1"
	ServerAddress6 = "fd77:1::1"
	BridgeName     = "br0"
)

// NewServer makes the namespace of the machine that Ingot runs on, with the link.
func NewServer(t testing.TB) *Namespace {
	t.Helper()
	Need(t)
	n := NewNamespace(t, "server")
	n.Bridge(BridgeName, ServerAddress+"/24", ServerAddress6+"/64")
	return n
}

// MAC is the n-th MAC address.
func MAC(n int) string { return fmt.Sprintf("52:54:00:77:00:%02x", n) }

// Endpoint is a manifest of an Endpoint.
func Endpoint(name, mac, ip string) string {
	return fmt.Sprintf("apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata: {name: %s}\nspec: {macAddress: %q, ip: %q}\n", name, mac, ip)
}
