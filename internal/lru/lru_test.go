package lru_test

import (
	"testing"

	"github.com/weir-run/weir/internal/lru"
)

func TestLeastRecentlyUsedEntryIsEvicted(t *testing.T) {
	m := lru.Map[string, int]{Max: 2}
	m.Put("a", 1)
	m.Put("b", 2)
	m.Put("a", 3)
	m.Put("c", 4)
	if _, ok := m.Get("b"); ok || m.Len() != 2 {
		t.Errorf("b was not evicted: %d entries", m.Len())
	}
	if v, ok := m.Get("a"); !ok || v != 3 {
		t.Errorf("a is %d, %v", v, ok)
	}
	m.Put("d", 5)
	if _, ok := m.Get("c"); ok {
		t.Error("c was not evicted, although a was used after it")
	}
	if v, ok := m.Remove("a"); !ok || v != 3 || m.Len() != 1 {
		t.Errorf("Remove returned %d, %v; %d entries remain", v, ok, m.Len())
	}
	if _, ok := m.Remove("a"); ok {
		t.Error("a was removed twice")
	}
}

func TestMapWithoutRoomStoresNothing(t *testing.T) {
	var m lru.Map[int, int]
	m.Put(1, 1)
	if _, ok := m.Get(1); ok || m.Len() != 0 {
		t.Errorf("%d entries", m.Len())
	}
}
