// Package diskspace tells how much of a file system the caches of images may take.
package diskspace

import "golang.org/x/sys/unix"

// share is the part of a small file system that is kept free.
const share = 20

// Free returns how many bytes of the file system of dir may be taken. Keep bytes are left to
// others, but not more than a twentieth of the file system. It is negative if others have used
// some of that.
func Free(dir string, keep int64) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return free(s, keep), nil
}

func free(s unix.Statfs_t, keep int64) int64 {
	return int64(s.Bavail)*s.Bsize - min(keep, int64(s.Blocks/share)*s.Bsize)
}
