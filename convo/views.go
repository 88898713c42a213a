package convo

import (
	"errors"
	"sync"

	"github.com/weir-run/weir/internal/lru"
)

// Views makes views and continues from the last view of a context, so that only new
// messages are read and counted. It is safe for concurrent use. Its results equal those of
// Context.View.
type Views struct {
	mu     sync.Mutex
	recent lru.Map[viewKey, *selection]
}

type viewKey struct {
	scope, context string
	spec           ViewSpec
}

// NewViews returns a cache of the views of at most contexts contexts; 0 means 256.
func NewViews(contexts int) *Views {
	if contexts <= 0 {
		contexts = 256
	}
	return &Views{recent: lru.Map[viewKey, *selection]{Max: contexts}}
}

// View is Context.View; scope distinguishes contexts with the same id: it is the id of the
// run.
func (v *Views) View(scope string, c Context, spec ViewSpec) (View, error) {
	spec = spec.withDefaults()
	key := viewKey{scope, c.ID, spec}
	s, err := v.selection(key, c, v.take(key))
	if err != nil {
		return View{}, err
	}
	view, err := s.result()
	// All leaves the selection unchanged when it is too large.
	whole := err == nil || spec.Strategy == All && errors.Is(err, ErrTooLarge)
	if whole && view.Need == nil && !s.shortened {
		v.put(key, s)
	}
	return view, err
}

// Fits is View with the strategy All, for a caller that has another view if the messages do
// not fit: ok is false then. That they still do not fit is known without reading any.
func (v *Views) Fits(scope string, c Context, spec ViewSpec) (view View, ok bool, err error) {
	spec.Strategy = All
	spec = spec.withDefaults()
	key := viewKey{scope, c.ID, spec}
	s := v.take(key)
	if s == nil || !s.exceededBy(c) {
		if s, err = v.selection(key, c, s); err != nil {
			return View{}, false, err
		}
	}
	if ok = s.tokens <= spec.Room; ok {
		view, err = s.result()
	}
	if !s.shortened {
		v.put(key, s)
	}
	return view, ok, err
}

// selection extends an earlier selection, nil for none, or makes a new one.
func (v *Views) selection(key viewKey, c Context, old *selection) (*selection, error) {
	if old != nil {
		s, err := old.extendedTo(c)
		if s != nil || err != nil {
			return s, err
		}
	}
	return newSelection(c, key.spec)
}

func (v *Views) take(key viewKey) *selection {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, _ := v.recent.Remove(key)
	return s
}

func (v *Views) put(key viewKey, s *selection) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.recent.Put(key, s)
}
