package sandbox

import (
	"fmt"
	"slices"
)

// Set are the executors that a process offers, the first of a language being
// that language's own.
type Set struct {
	list []Executor
}

// NewSet collects executors; a name used twice is an error.
func NewSet(executors ...Executor) (*Set, error) {
	s := &Set{list: slices.Clone(executors)}
	for i, e := range executors {
		for _, before := range executors[:i] {
			if before.Name() == e.Name() {
				return nil, fmt.Errorf("two executors are called %s", e.Name())
			}
		}
	}
	return s, nil
}

// Get returns the executor of that name, nil where there is none.
func (s *Set) Get(name string) Executor {
	if s == nil {
		return nil
	}
	for _, e := range s.list {
		if e.Name() == name {
			return e
		}
	}
	return nil
}

// ForLanguage returns the first executor of a language, nil where there is none.
func (s *Set) ForLanguage(language string) Executor {
	if s == nil {
		return nil
	}
	for _, e := range s.list {
		if e.Language() == language {
			return e
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
