package lru

import "testing"

func TestCache(t *testing.T) {
	c := New[string, int](10)
	for n, key := range []string{"a", "b", "c"} {
		c.Put(key, n, 3)
	}
	if _, ok := c.Get("a"); !ok {
		t.Error("a value within the limit is gone")
	}
	c.Put("d", 3, 3) // b was not used for longest
	c.Put("a", 7, 4)
	for key, want := range map[string]int{"a": 7, "b": 0, "c": 2, "d": 3} {
		if got, ok := c.Get(key); got != want || ok != (key != "b") {
			t.Errorf("%s: got %d, %t, want %d", key, got, ok, want)
		}
	}
	if values, cost := c.Size(); values != 3 || cost != 10 || len(c.items) != 3 {
		t.Errorf("%d values cost %d, and %d are found", values, cost, len(c.items))
	}
	c.Put("huge", 9, 11)
	if _, ok := c.Get("huge"); ok {
		t.Error("a value beyond the limit is kept")
	}
	c.Put("e", 4, 1)
	c.Drop("e")
	c.Drop("e")
	if values, cost := c.Size(); values != 0 || cost != 0 {
		t.Errorf("%d values cost %d", values, cost)
	}
}
