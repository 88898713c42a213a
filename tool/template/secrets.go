package template

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// minSecret is the shortest text that is taken out of results, in bytes; a
// shorter one is no secret, and its letters are everywhere.
const minSecret = 4

// Secrets resolves secrets and remembers those it gave out. It may be used by
// several goroutines.
type Secrets struct {
	lookup func(name string) (string, bool)

	mu   sync.Mutex
	used map[string]string // what must not be seen, and what stands for it
}

// NewSecrets makes Secrets; a nil lookup has none.
func NewSecrets(lookup func(name string) (string, bool)) *Secrets {
	return &Secrets{lookup: lookup, used: make(map[string]string)}
}

// Get resolves a secret by its name. The error names it and says that it is
// not there.
func (s *Secrets) Get(name string) (string, error) {
	if s.lookup != nil {
		if v, ok := s.lookup(name); ok {
			s.hide(v, "[secret "+name+"]")
			return v, nil
		}
	}
	return "", fmt.Errorf("there is no secret %s", name)
}

// hide remembers a text, and the forms it takes in URLs, JSON and headers.
func (s *Secrets) hide(v, stand string) {
	if len(v) < minSecret {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	forms := []string{v, url.QueryEscape(v), url.PathEscape(v), base64.StdEncoding.EncodeToString([]byte(v))}
	if quoted, err := json.Marshal(v); err == nil {
		forms = append(forms, strings.Trim(string(quoted), `"`))
	}
	for _, f := range forms {
		s.used[f] = stand
	}
}

// texts are the remembered texts, the longest first.
func (s *Secrets) texts() []string {
	return slices.SortedFunc(maps.Keys(s.used), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
}

// Scrub takes every secret that was given out out of a text.
func (s *Secrets) Scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.texts() {
		text = strings.ReplaceAll(text, t, s.used[t])
	}
	return text
}

// ScrubCut is Scrub for a text whose end was cut off: it also takes out the
// beginning of a secret that the cut went through.
func (s *Secrets) ScrubCut(text string) string {
	text = s.Scrub(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.texts() {
		for n := len(t) - 1; n >= minSecret; n-- {
			if rest, cut := strings.CutSuffix(text, t[:n]); cut {
				return rest + s.used[t]
			}
		}
	}
	return text
}

// Error takes the secrets out of an error's text. What errors.Is finds in it is
// found still; the error itself, with its text, is out of reach.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	return &scrubbed{text: s.Scrub(err.Error()), err: err}
}

type scrubbed struct {
	text string
	err  error
}

// Error implements error.
func (e *scrubbed) Error() string { return e.text }

// Is looks into the error that is hidden.
func (e *scrubbed) Is(target error) bool { return errors.Is(e.err, target) }
