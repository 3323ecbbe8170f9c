package imagecache

// Progress returns how much of a blob is there: all of a complete one, and what has
// arrived of one that is being fetched. ok is false for any other.
func (c *Cache) Progress(digest string) (done, total int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.files[digest]; have != nil {
		return have.size, have.size, true
	}
	for id, f := range c.downloads {
		if id.digest == digest {
			return f.progress(), id.size, true
		}
	}
	return 0, 0, false
}

// Complete reports whether all of the blob was on disk, and verified, when it was
// asked for.
func (b *Blob) Complete() bool { return b.file != nil }
