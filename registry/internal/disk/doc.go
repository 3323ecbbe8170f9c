// Package disk makes what is written to files durable, and locks them, by the calls of
// the operating system that the standard library leaves out.
package disk
