package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/store"
)

type streamSessionInput struct {
	SessionPath
	LastEventID string `header:"Last-Event-ID" maxLength:"100000" doc:"The id of the last event that was received; browsers send it when they connect again"`
	Cursor      string `query:"cursor" maxLength:"100000" doc:"The same for clients that cannot set the header"`
}

func (s *Server) registerSessionStream() {
	register(s, operation{
		id: "streamSession", method: http.MethodGet, path: "/v1/sessions/{session}/stream", scope: Read, tags: []string{"sessions"},
		summary: "Stream the events of all rounds of a session, with live output, as server-sent events",
		description: "The stream begins with the first round and continues with each new one until the reader leaves. The id of each event is a position in the " +
			"session: a reader that sends the last one it received misses no event and gets none twice, also after a restart of the server.",
	}, streamSession)
}

// roundSeparator separates the run of a round from the cursor in that run, in positions of
// streams of sessions.
const roundSeparator = "/"

func streamSession(c *call, in *streamSessionInput) (*streamOutput, error) {
	if _, err := c.session(in.Session); err != nil {
		return nil, err
	}
	position := in.LastEventID
	if position == "" {
		position = in.Cursor
	}
	f := sessionFollower{c: c, session: in.Session}
	if position != "" {
		var ok bool
		if f.run, f.cursor, ok = strings.Cut(position, roundSeparator); !ok {
			return nil, invalidRequest("header.Last-Event-ID", "the id is not one of the stream of a session")
		}
		if row, err := c.run(f.run); err != nil || row.Session != in.Session {
			return nil, invalidRequest("header.Last-Event-ID", "the id is not one of the stream of this session")
		}
	}
	if c.isDraining() {
		return nil, unavailable()
	}
	return c.stream(f.follow)
}

// sessionFollower reads the rounds of a session, one after another.
type sessionFollower struct {
	c       *call
	session string
	run     string // the round that is read, "" before the first
	cursor  string // behind what was read of it
	// read is how many events the round had when it was last read to its end, and reading how
	// many it had when the present reading began.
	read, reading int64
	later         []string // rounds, oldest first
}

// roundPoll is how often a reader looks for the next round.
const roundPoll = 250 * time.Millisecond

// follow sends the items of all rounds until ctx ends or the session is deleted.
func (f *sessionFollower) follow(ctx context.Context, to chan<- streamItem) {
	defer close(to)
	for ctx.Err() == nil {
		more, err := f.next(ctx)
		if err == nil && more {
			err = f.round(ctx, to)
		}
		switch {
		case errors.Is(err, store.ErrNotFound): // deleted meanwhile
			return
		case err != nil:
			select {
			case to <- streamItem{err: err}:
			case <-ctx.Done():
			}
			return
		case more:
			continue
		}
		select {
		case <-time.After(roundPoll):
		case <-ctx.Done():
		}
	}
}

// round sends the items of the present round until it has ended.
func (f *sessionFollower) round(ctx context.Context, to chan<- streamItem) error {
	for item, err := range f.c.app.Follow(ctx, f.run, f.cursor) {
		if err != nil {
			if ctx.Err() != nil {
				return nil // the reader has gone
			}
			return err
		}
		select {
		case to <- streamItem{Item: item, round: f.run}:
			f.cursor = item.Cursor()
		case <-ctx.Done():
			return nil
		}
	}
	f.read = f.reading
	return nil
}

// next reports whether there is something to read: the present round has not been read to its
// end, or another one has begun, which is the present one then.
func (f *sessionFollower) next(ctx context.Context) (more bool, err error) {
	if f.run != "" {
		row, err := f.c.app.Store.Run(ctx, f.run)
		if err != nil {
			return false, err
		}
		// A round that ended may continue, if it is retried.
		if !row.Head.Status.Ended() || row.Events != f.read {
			f.reading = row.Events
			return true, nil
		}
	}
	if len(f.later) == 0 {
		if f.later, err = f.roundsAfter(ctx, f.run); err != nil || len(f.later) == 0 {
			return false, err
		}
	}
	f.run, f.cursor, f.read, f.reading, f.later = f.later[0], "", 0, 0, f.later[1:]
	return true, nil
}

// roundsAfter lists the rounds after a run that have begun, oldest first.
func (f *sessionFollower) roundsAfter(ctx context.Context, run string) ([]string, error) {
	const page = 100
	var out []string
	for before := ""; ; {
		list, err := f.c.app.Store.Runs(ctx, store.Filter{Session: f.session, Before: before, Limit: page})
		if err != nil {
			return nil, err
		}
		for i := range list {
			before = list[i].ID
			if before == run {
				slices.Reverse(out)
				return out, nil
			}
			if list[i].Commits > 0 {
				out = append(out, before)
			}
		}
		if len(list) < page {
			slices.Reverse(out)
			_, err := f.c.app.Store.Session(ctx, f.session)
			return out, err
		}
	}
}
