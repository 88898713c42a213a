package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Event is one item of a stream: an event of the journal of the run or of a child run, or
// live output. docs/streams.md describes the members of Data.
type Event struct {
	// ID is the cursor: Stream continues behind it.
	ID   string
	Type string
	Data json.RawMessage
}

// maxEvent bounds one line of a stream.
const maxEvent = 64 << 20

// Stream yields the events of a run from behind a cursor, "" from the beginning, until the
// run has ended. It connects again when the connection or the server ends, without missing
// an event or yielding one twice, for as long as ctx lasts. An *Error of the server ends it.
func (c *Client) Stream(ctx context.Context, run, cursor string) iter.Seq2[Event, error] {
	return c.stream(ctx, "/v1/runs/"+url.PathEscape(run)+"/stream", cursor)
}

// StreamSession yields the events of all rounds of a session in the same way, from the first
// round on, and waits for new ones until ctx ends. The ids of events of Stream are no cursors
// of it.
func (c *Client) StreamSession(ctx context.Context, session, cursor string) iter.Seq2[Event, error] {
	return c.stream(ctx, "/v1/sessions/"+url.PathEscape(session)+"/stream", cursor)
}

func (c *Client) stream(ctx context.Context, path, cursor string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			ended, stopped, err := c.streamOnce(ctx, path, &cursor, yield)
			if stopped || ended {
				return
			}
			refused, isError := errors.AsType[*Error](err)
			if ctx.Err() != nil || isError && refused.Status < http.StatusInternalServerError {
				yield(Event{}, err)
				return
			}
			select {
			case <-time.After(time.Duration(100+rand.IntN(900)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// streamOnce reads one connection; ended says that what is streamed has ended.
func (c *Client) streamOnce(ctx context.Context, path string, cursor *string, yield func(Event, error) bool) (ended, stopped bool, err error) {
	r, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return false, false, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if *cursor != "" {
		r.Header.Set("Last-Event-ID", *cursor)
	}
	answer, err := c.http().Do(r)
	if err != nil {
		return false, false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNoContent {
		return true, false, nil
	}
	if err := errorOf(answer); err != nil {
		return false, false, err
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEvent)
	for {
		e, ok := nextEvent(lines)
		switch {
		case !ok:
			return false, false, lines.Err()
		case e.Type == "server.failed":
			return false, false, fmt.Errorf("%s: %s", path, e.Data)
		case e.ID == "":
			continue // of the server, not of what is streamed
		}
		*cursor = e.ID
		if !yield(e, nil) {
			return false, true, nil
		}
	}
}

// nextEvent reads lines up to the end of an event; false at the end of the stream.
func nextEvent(lines *bufio.Scanner) (e Event, ok bool) {
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			e.ID = value
		case "event":
			e.Type = value
		case "data":
			e.Data = json.RawMessage(value)
		case "": // a comment has a value, the end of an event has none
			if value == "" && e.Data != nil {
				return e, true
			}
		}
	}
	return e, false
}
