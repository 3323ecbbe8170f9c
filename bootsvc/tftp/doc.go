// Package tftp serves boot loaders to firmware by TFTP (RFC 1350, with the options
// of RFC 2347 to 2349), on one port.
//
// A library speaks the protocol. In front of it lies a socket of our own that lets
// through only what belongs: requests that are well formed and within bounds, and
// of a transfer under way nothing but the acknowledgement that it waits for. A
// source address can be forged, so one that has acknowledged nothing is sent one
// packet for each that came from it, and no more. It also cuts what the library writes,
// many blocks at a time, into those that clients asked for, and sends each as soon as
// the one before is acknowledged.
package tftp
