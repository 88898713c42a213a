package sandbox

import (
	"fmt"
	"slices"
)

// Set is the list of executors of a process. The first one of a language is the default for
// that language.
type Set struct {
	list []Executor
}

// NewSet returns a set of executors; a duplicate name is an error.
func NewSet(executors ...Executor) (*Set, error) {
	s := &Set{list: slices.Clone(executors)}
	for i, e := range executors {
		for _, before := range executors[:i] {
			if before.Name() == e.Name() {
				return nil, fmt.Errorf("two executors have the name %s", e.Name())
			}
		}
	}
	return s, nil
}

// Get returns the executor with that name, nil if there is none. Its errors can be read
// whatever the executor returns.
func (s *Set) Get(name string) Executor {
	if s == nil {
		return nil
	}
	for _, e := range s.list {
		if e.Name() == name {
			return guarded{e}
		}
	}
	return nil
}

// ForLanguage is Get for the first executor of a language.
func (s *Set) ForLanguage(language string) Executor {
	if s == nil {
		return nil
	}
	for _, e := range s.list {
		if e.Language() == language {
			return guarded{e}
		}
	}
	return nil
}

// All lists the executors in the order they were given.
func (s *Set) All() []Executor {
	if s == nil {
		return nil
	}
	return slices.Clone(s.list)
}
