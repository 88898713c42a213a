package template

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weir-run/weir/scrub"
)

// Secrets resolves secrets and remembers the resolved ones. It is safe for concurrent use.
type Secrets struct {
	lookup func(name string) (string, bool)

	mu   sync.Mutex
	used scrub.Set
}

// NewSecrets returns Secrets; a nil lookup has none.
func NewSecrets(lookup func(name string) (string, bool)) *Secrets {
	return &Secrets{lookup: lookup}
}

// Get resolves a secret by its name. The error for a missing one names it.
func (s *Secrets) Get(name string) (string, error) {
	if s.lookup != nil {
		if v, ok := s.lookup(name); ok {
			s.addSecret(v, "[secret "+name+"]")
			return v, nil
		}
	}
	return "", fmt.Errorf("there is no secret %s", name)
}

// addSecret remembers a text, which is then removed in every encoding.
func (s *Secrets) addSecret(v, stand string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used.Add(v, stand)
}

// Scrub removes every resolved secret from a text.
func (s *Secrets) Scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used.Scrub(text)
}

// ScrubCut is Scrub for a text whose end was cut off: it also removes the beginning of a
// secret at the cut.
func (s *Secrets) ScrubCut(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used.ScrubCut(text)
}

// Error removes the secrets from an error's text. errors.Is still finds the causes; the
// error itself, with its text, is not accessible.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	return &scrubbedError{text: s.Scrub(err.Error()), err: err}
}

type scrubbedError struct {
	text string
	err  error
}

// Error implements error.
func (e *scrubbedError) Error() string { return e.text }

// Is checks the hidden error.
func (e *scrubbedError) Is(target error) bool { return errors.Is(e.err, target) }
