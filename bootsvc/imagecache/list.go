package imagecache

import "time"

// Content is one blob that is in the cache, or on its way there.
type Content struct {
	Digest  string
	Size    int64     // in bytes
	Fetched int64     // how many of them are there
	Used    time.Time // when it was last used, to the minute; zero for one on its way
	From    string    // host/repository; empty for one that was there before the process began
}

// Contents returns all blobs, in no order.
func (c *Cache) Contents() []Content {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Content, 0, len(c.files)+len(c.downloads))
	for _, f := range c.files {
		all = append(all, Content{Digest: f.entry.Digest, Size: f.size, Fetched: f.size, Used: f.entry.Used()})
	}
	for id, d := range c.downloads {
		if c.files[id.digest] == nil {
			all = append(all, Content{Digest: id.digest, Size: id.size, Fetched: d.progress(), From: d.key.From})
		}
	}
	return all
}
