// Package bmc speaks Redfish with baseboard management controllers: it finds the
// machines behind a BMC, reads their inventory and power state, resets them and
// sets what they boot from once.
//
// A Pool keeps one client for each BMC, and each client one session and at most
// two connections, for BMCs are small and slow: a dozen sessions lock out the
// people who own them, and a handshake costs them more than the answer. Whatever
// is asked of a BMC goes through one transport (transport.go), which logs in, waits for its
// turn, counts, and bounds what comes back. No method waits for a machine to do
// something: power and boot settings take their effect in their own time.
//
// Vendors differ. What can be stated as data is in quirks.go; what they write
// into resources against the schema is repaired in tolerant.go, property by
// property, so that one odd field does not lose the rest.
package bmc
