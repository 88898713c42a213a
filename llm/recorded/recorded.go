// Package recorded contains providers that call no model: Replay answers from an earlier run, Conversations from
// recorded conversations, and Scripted with fixed texts. Recorder writes the files that Replay reads. It must not
// answer a request that was not recorded: the error shows the difference.
package recorded

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// Replay answers by effect key. It is safe for concurrent use.
type Replay struct {
	byKey map[string][]llm.Recording
}

// New creates a replay. A recording whose request is not JSON is an error. Keys are relative to the run: the run id
// in "run/path/name#1" is ignored. If a key occurs more than once, for example after a retry, the last recording of
// an equal request counts.
func New(recordings []llm.Recording) (*Replay, error) {
	r := &Replay{byKey: make(map[string][]llm.Recording, len(recordings))}
	for i, rec := range recordings {
		var b bytes.Buffer
		if err := json.Compact(&b, rec.Request); err != nil {
			return nil, fmt.Errorf("recording %d at key %s: request: %w", i+1, rec.Key, err)
		}
		if rec.Response == nil && rec.Error == nil {
			return nil, fmt.Errorf("recording %d at key %s: neither a response nor an error", i+1, rec.Key)
		}
		rec.Request = b.Bytes()
		key := relativeKey(rec.Key)
		r.byKey[key] = append(r.byKey[key], rec)
	}
	return r, nil
}

// Open creates a replay of a file that a Recorder wrote.
func Open(path string) (*Replay, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	defer f.Close() //nolint:errcheck // the file was only read
	recs, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("read recording %s: %w", path, err)
	}
	return New(recs)
}

// read reads one recording a line. An incomplete last line, which a crash can leave, is skipped.
func read(r io.Reader) ([]llm.Recording, error) {
	var out []llm.Recording
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var rec llm.Recording
		if err := json.Unmarshal(line, &rec); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, rec)
	}
}

// relativeKey returns an effect key without the run's id.
func relativeKey(key string) string {
	if _, rest, ok := strings.Cut(key, "/"); ok {
		return rest
	}
	return key
}

// Generate returns the recording of the request's key. An unknown key and a different request are *llm.Error with
// code replay_divergence; a recorded error is returned as *llm.Error and is not retried.
func (r *Replay) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	asked, err := req.Canonical()
	if err != nil {
		return nil, err
	}
	key := relativeKey(req.Key)
	recs := r.byKey[key]
	if len(recs) == 0 {
		return nil, divergenceError("replay of %s: no call was recorded at this key; %s", key, r.someKeys())
	}
	for _, rec := range slices.Backward(recs) {
		if !bytes.Equal(rec.Request, asked) {
			continue
		}
		if rec.Error != nil {
			return nil, &llm.Error{Code: rec.Error.Code, Message: rec.Error.Message}
		}
		resp := *rec.Response
		resp.Message.Calls = slices.Clone(resp.Message.Calls)
		stream(&resp, emit)
		return &resp, nil
	}
	return nil, divergenceError("replay of %s: the request differs from the recording: %s",
		key, differenceOfJSON(recs[len(recs)-1].Request, asked))
}

// someKeys lists a few of the keys for an error message.
func (r *Replay) someKeys() string {
	const most = 5
	keys := slices.Sorted(maps.Keys(r.byKey))
	switch {
	case len(keys) == 0:
		return "the recording is empty"
	case len(keys) > most:
		return fmt.Sprintf("it has %s and %d more", strings.Join(keys[:most], ", "), len(keys)-most)
	}
	return "it has " + strings.Join(keys, ", ")
}

func divergenceError(format string, args ...any) error {
	return &llm.Error{Code: engine.CodeReplayDivergence, Message: fmt.Sprintf(format, args...)}
}

// stream emits a whole answer in pieces.
func stream(r *llm.Response, emit func(llm.Chunk)) {
	if r.Message.Reasoning != "" {
		emit(llm.Chunk{Reasoning: r.Message.Reasoning})
	}
	for _, p := range pieces(r.Message.Text) {
		emit(llm.Chunk{Text: p})
	}
	for _, c := range r.Message.Calls {
		emit(llm.Chunk{Call: &c})
	}
	if r.Usage != (llm.Usage{}) {
		u := r.Usage
		emit(llm.Chunk{Usage: &u})
	}
}

// pieces cuts a text after spaces into at most four parts of similar size.
func pieces(s string) []string {
	var out []string
	for want := 4; s != ""; want-- {
		cut := len(s)
		if want > 1 {
			if i := strings.IndexByte(s[len(s)/want:], ' '); i >= 0 {
				cut = len(s)/want + i + 1
			}
		}
		out = append(out, s[:cut])
		s = s[cut:]
	}
	return out
}
