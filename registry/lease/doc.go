// Package lease turns DHCP leases into the few bytes that a store keeps of them, and back.
package lease
