package imagecache

// insert takes a file among those that can be served; mu is held.
func (c *Cache) insert(f *file) {
	if old := c.files[f.digest]; old != nil {
		c.forget(old)
	}
	f.elem = c.order.PushFront(f)
	c.files[f.digest] = f
	c.size += f.size
	c.count()
}

// forget takes a file that is gone from among them; mu is held.
func (c *Cache) forget(f *file) {
	if c.files[f.digest] != f {
		return
	}
	c.order.Remove(f.elem)
	delete(c.files, f.digest)
	c.size -= f.size
	c.count()
}

// remove removes a file.
func (c *Cache) remove(f *file) {
	c.mu.Lock()
	finish := c.unlink(f)
	c.mu.Unlock()
	finish()
}

// unlink takes a file's name away; mu is held, and finish is to be called without.
func (c *Cache) unlink(f *file) (finish func()) {
	if c.files[f.digest] != f {
		return func() {}
	}
	c.forget(f)
	finish, err := c.disk.drop(f.digest)
	if err != nil {
		c.log.Warn("image blob cannot be removed", "image", f.digest, "err", err)
	}
	return finish
}

// count shows what there is; mu is held, or nobody else knows c yet.
func (c *Cache) count() {
	c.metrics.size.Set(float64(c.size))
	c.metrics.blobs.Set(float64(len(c.files)))
}

// reserve makes room for a blob of a size, and reports whether there is any.
func (c *Cache) reserve(size int64) bool {
	c.mu.Lock()
	c.size += size
	c.count()
	c.mu.Unlock()
	if c.max <= 0 || c.evict(func() int64 { return c.size - c.max }) {
		return true
	}
	c.unreserve(size)
	return false
}

func (c *Cache) unreserve(size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size -= size
	c.count()
}

// evict removes the files that were not used longest until excess, which is asked
// under mu, is gone. When that cannot be it removes none. Files in use stay, and so
// do those that are spared.
func (c *Cache) evict(excess func() int64) bool {
	c.mu.Lock()
	needed, idle := excess(), c.idle()
	c.mu.Unlock()
	if needed <= 0 {
		return true
	}
	victims, gain := c.choose(idle, needed)
	if gain < needed {
		return false
	}
	return c.sweep(victims) >= needed
}

// idle returns the files that nobody reads, those not used longest first; mu is held.
func (c *Cache) idle() []*file {
	var idle []*file
	for e := c.order.Back(); e != nil; e = e.Prev() {
		if f := e.Value.(*file); f.refs.n == 0 {
			idle = append(idle, f)
		}
	}
	return idle
}

// choose returns the first files that may go and whose sizes make up what is needed.
func (c *Cache) choose(idle []*file, needed int64) (victims []*file, gain int64) {
	for _, f := range idle {
		if gain >= needed {
			break
		}
		if !c.spare(f.digest) {
			victims = append(victims, f)
			gain += f.size
		}
	}
	return victims, gain
}

// sweep removes those of the victims that nobody has begun to read meanwhile.
func (c *Cache) sweep(victims []*file) (gain int64) {
	for _, f := range victims {
		c.mu.Lock()
		finish := func() {}
		if f.refs.n == 0 && c.files[f.digest] == f {
			finish = c.unlink(f)
			gain += f.size
			c.metrics.evictions.Inc()
		}
		c.mu.Unlock()
		finish()
	}
	return gain
}
