package bootsvc

import (
	"container/list"
	"sync"
)

// lru keeps the most recently used values up to a total cost.
type lru[K comparable, V any] struct {
	mu    sync.Mutex
	limit int
	cost  int
	order *list.List // of *lruItem[K, V], most recently used first
	items map[K]*list.Element
}

type lruItem[K comparable, V any] struct {
	key   K
	value V
	cost  int
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{limit: limit, order: list.New(), items: make(map[K]*list.Element)}
}

func (c *lru[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[key]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*lruItem[K, V]).value, true
}

// put keeps value under key, and forgets what was not used longest until the
// limit holds. A value that costs more than the limit is not kept.
func (c *lru[K, V]) put(key K, value V, cost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.items[key]; ok {
		c.drop(e)
	}
	c.items[key] = c.order.PushFront(&lruItem[K, V]{key, value, cost})
	c.cost += cost
	for c.cost > c.limit {
		c.drop(c.order.Back())
	}
}

func (c *lru[K, V]) drop(e *list.Element) {
	item := c.order.Remove(e).(*lruItem[K, V])
	delete(c.items, item.key)
	c.cost -= item.cost
}
