// Package disk locks files and drops their mapped pages, by system calls that the standard library leaves out.
package disk
