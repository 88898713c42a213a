package template

import (
	"errors"
	"fmt"
	"sync"

	"github.com/weir-run/weir/scrub"
)

// Secrets resolves secrets and remembers those it gave out. It may be used by
// several goroutines.
type Secrets struct {
	lookup func(name string) (string, bool)

	mu   sync.Mutex
	used scrub.Set
}

// NewSecrets makes Secrets; a nil lookup has none.
func NewSecrets(lookup func(name string) (string, bool)) *Secrets {
	return &Secrets{lookup: lookup}
}

// Get resolves a secret by its name. The error names it and says that it is
// not there.
func (s *Secrets) Get(name string) (string, error) {
	if s.lookup != nil {
		if v, ok := s.lookup(name); ok {
			s.addSecret(v, "[secret "+name+"]")
			return v, nil
		}
	}
	return "", fmt.Errorf("there is no secret %s", name)
}

// addSecret remembers a text, which is then taken out in every encoding.
func (s *Secrets) addSecret(v, stand string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used.Add(v, stand)
}

// Scrub takes every secret that was given out out of a text.
func (s *Secrets) Scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used.Scrub(text)
}

// ScrubCut is Scrub for a text whose end was cut off: it also takes out the
// beginning of a secret that the cut went through.
func (s *Secrets) ScrubCut(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used.ScrubCut(text)
}

// Error takes the secrets out of an error's text. What errors.Is finds in it is
// found still; the error itself, with its text, is out of reach.
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

// Is looks into the error that is hidden.
func (e *scrubbedError) Is(target error) bool { return errors.Is(e.err, target) }
