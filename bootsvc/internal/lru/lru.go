// Package lru remembers what was used last, in bounded memory.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps the most recently used values up to a total cost. It is safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	mu    sync.Mutex
	limit int
	cost  int
	order *list.List // of *item[K, V], most recently used first
	items map[K]*list.Element
}

type item[K comparable, V any] struct {
	key   K
	value V
	cost  int
}

// New returns a Cache of values that together cost at most limit.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, order: list.New(), items: make(map[K]*list.Element)}
}

// Get returns what is kept under key, and takes it for used.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[key]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*item[K, V]).value, true
}

// Put keeps value under key, and forgets what was not used longest until the
// limit holds. A value that costs more than the limit is not kept.
func (c *Cache[K, V]) Put(key K, value V, cost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.items[key]; ok {
		c.drop(e)
	}
	c.items[key] = c.order.PushFront(&item[K, V]{key, value, cost})
	c.cost += cost
	for c.cost > c.limit {
		c.drop(c.order.Back())
	}
}

// Drop forgets what is kept under key.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.items[key]; ok {
		c.drop(e)
	}
}

// Size returns how many values are kept, and what they cost.
func (c *Cache[K, V]) Size() (values, cost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len(), c.cost
}

func (c *Cache[K, V]) drop(e *list.Element) {
	gone := c.order.Remove(e).(*item[K, V])
	delete(c.items, gone.key)
	c.cost -= gone.cost
}
