package engine

import (
	"maps"

	"github.com/benbjohnson/immutable"
)

// Object is an immutable object of the state that a key with the reducer `merge` has. A merge
// costs what it adds: the new Object shares its other members with the one before.
type Object struct {
	members *immutable.SortedMap[string, Value]
}

// minObject is the number of members from which an object is kept as an Object. Copying a
// smaller one is cheaper.
const minObject = 32

// newObject returns m as an Object. It does not keep m.
func newObject(m map[string]any) *Object {
	b := immutable.NewSortedMapBuilder[string, Value](nil)
	// order: the result is sorted.
	for k, v := range m {
		b.Set(k, v)
	}
	return &Object{members: b.Map()}
}

// Get returns a member and whether it exists. It must not be changed.
func (o *Object) Get(name string) (any, bool) { return o.members.Get(name) }

// Len returns the number of members.
func (o *Object) Len() int { return o.members.Len() }

// All returns all members in a new map. They must not be changed.
func (o *Object) All() map[string]any {
	m := make(map[string]any, o.members.Len())
	for it := o.members.Iterator(); !it.Done(); {
		k, v, _ := it.Next()
		m[k] = v
	}
	return m
}

// merge returns the object with the members of more.
func (o *Object) merge(more map[string]any) *Object {
	if len(more) > o.members.Len()/8 {
		m := o.All()
		maps.Copy(m, more)
		return newObject(m)
	}
	members := o.members
	// order: the result is sorted.
	for k, v := range more {
		members = members.Set(k, v)
	}
	return &Object{members: members}
}

// mergeInto combines an object of the state, a map or an *Object, with the members of more.
// The second result is false if old is neither.
func mergeInto(old Value, more map[string]any) (Value, bool) {
	switch t := old.(type) {
	case *Object:
		return t.merge(more), true
	case map[string]any:
		if len(t)+len(more) >= minObject {
			return newObject(t).merge(more), true
		}
		m := maps.Clone(t)
		maps.Copy(m, more)
		return m, true
	}
	return nil, false
}

// growthOf returns by how many bytes of MaxStateBytes a merge makes an object larger.
func growthOf(old Value, more map[string]any) int {
	n := 0
	// order: the result is a sum.
	for k, v := range more {
		n += sizeOf(v)
		if was, ok := memberOf(old, k); ok {
			n -= sizeOf(was)
		} else {
			n += len(k)
		}
	}
	return n
}

// memberOf returns a member of a map or an *Object.
func memberOf(object Value, name string) (Value, bool) {
	switch t := object.(type) {
	case *Object:
		return t.Get(name)
	case map[string]any:
		v, ok := t[name]
		return v, ok
	}
	return nil, false
}
