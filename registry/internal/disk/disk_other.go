//go:build !linux

package disk

import "os"

// Preallocate leaves it to the zeros that are written next to make room.
func Preallocate(*os.File, int64, int64) error { return nil }

func Datasync(f *os.File) error { return f.Sync() }

// Lock trusts the lock of the bbolt file alone.
func Lock(*os.File) bool { return true }
