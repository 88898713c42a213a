package openai_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/server"
	"github.com/weir-run/weir/server/servertest"
)

// responseEvent is what a test reads of an event of a response.
type responseEvent struct {
	Type     string
	Number   int `json:"sequence_number"`
	Delta    string
	Code     string
	Response answered
}

const longText = "The first berth is taken until noon, and the second one is free for the whole day; the third has no crane.\n\nShall I book?"

// eventReader reads the events of a stream one by one.
type eventReader struct {
	t    *testing.T
	body io.ReadCloser
	scan *bufio.Scanner
}

// openStream makes a response, or reads one that is stored.
func openStream(t *testing.T, p *servertest.Process, token, method, path string, body any) *eventReader {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	q, err := http.NewRequestWithContext(ctx, method, p.URL+"/v1/responses"+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	a, err := new(http.Client).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Body.Close() }) // it may be closed already
	if a.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(a.Body) // what there is
		t.Fatal(a.StatusCode, string(text))
	}
	return &eventReader{t, a.Body, bufio.NewScanner(a.Body)}
}

// next returns the next event; ok is false at the end.
func (r *eventReader) next() (e responseEvent, ok bool) {
	r.t.Helper()
	for r.scan.Scan() {
		data, found := strings.CutPrefix(r.scan.Text(), "data: ")
		if !found {
			continue
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			r.t.Fatal(data, err)
		}
		return e, true
	}
	return e, false
}

// until reads events up to the first one of which is is true.
func (r *eventReader) until(is func(responseEvent) bool) (out []responseEvent) {
	r.t.Helper()
	for {
		e, ok := r.next()
		if !ok {
			r.t.Fatalf("the stream ends after %+v", out)
		}
		if out = append(out, e); is(e) {
			return out
		}
	}
}

func (r *eventReader) rest() (out []responseEvent) {
	r.t.Helper()
	for e, ok := r.next(); ok; e, ok = r.next() {
		out = append(out, e)
	}
	return out
}

func textOf(events []responseEvent) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Delta)
	}
	return b.String()
}

func isDelta(e responseEvent) bool { return e.Type == "response.output_text.delta" }

// halfway is a model that waits in the middle of its answer until it may continue.
type halfway struct {
	text    atomic.Pointer[string]
	waits   atomic.Bool
	started chan struct{}
	finish  chan struct{}
}

func newHalfway(t *testing.T) *halfway {
	t.Helper()
	m := &halfway{started: make(chan struct{}, 16), finish: make(chan struct{})}
	m.say(longText)
	m.waits.Store(true)
	return m
}

func (m *halfway) say(text string) { m.text.Store(&text) }

func (m *halfway) answer(*llmtest.Request) llmtest.Turn {
	turn := llmtest.Turn{Text: *m.text.Load()}
	if !m.waits.Load() {
		return turn
	}
	finish := m.finish
	turn.Before = func(ctx context.Context, event int) {
		if event != 20 {
			return
		}
		m.started <- struct{}{}
		select {
		case <-finish:
		case <-ctx.Done():
		}
	}
	return turn
}

// TestEveryReaderOfAResponseGetsTheSameEvents reads a response while its model speaks, in the stream that made it and in others that
// begin after any of its events, and compares all with what is read when it is complete.
func TestEveryReaderOfAResponseGetsTheSameEvents(t *testing.T) {
	t.Parallel()
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprint("background ", background), func(t *testing.T) {
			t.Parallel()
			checkReaders(t, background)
		})
	}
}

func checkReaders(t *testing.T, background bool) {
	t.Helper()
	m := newHalfway(t)
	release := sync.OnceFunc(func() { close(m.finish) })
	t.Cleanup(release)
	p := open(t, servertest.Options{Answer: m.answer})
	token := p.Token("ada", server.Read, server.Start)
	first := openStream(t, p, token, http.MethodPost, "", map[string]any{"model": "talk", "input": "x", "stream": true, "background": background})
	got := first.until(isDelta)
	path := "/" + got[0].Response.ID + "?stream=true"
	var others []*eventReader
	for after := range 6 {
		others = append(others, openStream(t, p, token, http.MethodGet, fmt.Sprint(path, "&starting_after=", after), nil))
	}
	live := others[0].until(isDelta) // before the model has finished
	release()
	got = append(got, first.rest()...)
	stored := openStream(t, p, token, http.MethodGet, path, nil).rest()
	if textOf(got) != longText || len(got) < 12 {
		t.Fatalf("%+v", got)
	}
	checkNumbers(t, got, true, 0)
	if !reflect.DeepEqual(got, stored) {
		t.Errorf("%+v, afterwards %+v", got, stored)
	}
	for after, r := range others {
		events := r.rest()
		if after == 0 {
			events = append(live, events...)
		}
		if !reflect.DeepEqual(events, got[after+1:]) {
			t.Errorf("after %d: %+v, expected %+v", after, events, got[after+1:])
		}
	}
}

// TestAReaderContinuesAfterARestart restarts the server while a response in the background is being streamed. The call is made
// again: where the text is the same, each reader continues with the next event; where it is not, a reader that has some of the void
// text gets an error, and the others get all of the new one, under numbers that no reader has seen.
func TestAReaderContinuesAfterARestart(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{
		"the same text": longText, "another text": "All berths are taken today, I am sorry to say; please ask again tomorrow.", "a shorter text": "No.",
		"a text that begins the same": longText[:40] + " closed", "no text": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRestart(t, second)
		})
	}
}

func checkRestart(t *testing.T, second string) {
	t.Helper()
	m := newHalfway(t)
	p := open(t, servertest.Options{Answer: m.answer})
	token := p.Token("ada", server.Read, server.Start)
	r := openStream(t, p, token, http.MethodPost, "", map[string]any{"model": "talk", "input": "x", "stream": true, "background": true})
	got := r.until(func(e responseEvent) bool { return isDelta(e) && e.Number >= firstPiece+1 })
	last := got[len(got)-1].Number
	m.waits.Store(false)
	m.say(second)
	p.Restart()
	path := "/" + got[0].Response.ID + "?stream=true"
	fresh := openStream(t, p, token, http.MethodGet, path, nil).rest()
	if text := textOf(fresh); text != second || fresh[len(fresh)-1].Type != "response.completed" {
		t.Fatalf("%+v", fresh)
	}
	stored := openStream(t, p, token, http.MethodGet, path, nil).rest()
	if !reflect.DeepEqual(stored, fresh) {
		t.Errorf("%+v, afterwards %+v", fresh, stored)
	}
	for after := range last + 1 {
		events := openStream(t, p, token, http.MethodGet, fmt.Sprint(path, "&starting_after=", after), nil).rest()
		if second != longText && after >= firstPiece { // what the client has is void
			if len(events) != 1 || events[0].Type != "error" || events[0].Code != "status_conflict" {
				t.Errorf("after %d: %+v", after, events)
			}
			continue
		}
		if want := eventsAfter(fresh, after); !reflect.DeepEqual(events, want) {
			t.Errorf("after %d: %+v, expected %+v", after, events, want)
		}
	}
	checkNumbers(t, fresh, second == longText, last)
}

// firstPiece is the number of the first piece of text.
const firstPiece = 4

func eventsAfter(events []responseEvent, after int) []responseEvent {
	for i, e := range events {
		if e.Number > after {
			return events[i:]
		}
	}
	return nil
}

// checkNumbers checks that numbers ascend, without gaps if the text is the same, and that no piece of another text has the number of
// one that a reader had.
func checkNumbers(t *testing.T, events []responseEvent, same bool, last int) {
	t.Helper()
	for i, e := range events {
		if i > 0 && e.Number <= events[i-1].Number || same && e.Number != i || !same && isDelta(e) && e.Number <= last {
			t.Errorf("event %d of type %s has the number %d", i, e.Type, e.Number)
		}
	}
}
