package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

type listStreamInput struct {
	RunFilter
	Limit int `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many of the newest runs are watched"`
}

// listChange is an event of a stream of a list.
type listChange struct {
	IDs  []string     `json:"ids" doc:"All runs of the page, newest first"`
	Runs []app.RunRow `json:"runs" doc:"Those that are new or have changed"`
	Next string       `json:"next" doc:"The cursor of the page behind it"`
}

// listInterval is how often a stream of a list reads it; with a store that reports changes, at
// most so often, and every listIdle without a report.
const (
	listInterval = time.Second
	listIdle     = 10 * time.Second
	// listShare bounds the share of time for which a stream reads: one of listShare.
	listShare = 10
)

func (s *Server) registerListStream() {
	register(s, operation{
		id: "streamRuns", method: http.MethodGet, path: "/v1/stream", scope: Read, tags: []string{"runs"},
		summary: "Stream the first page of a list of runs as it changes, as server-sent events",
		description: "The first event, `runs`, has the whole page; each further one names all runs of the page and has those that are new or have changed. " +
			"The list is read at most once a second, so that changes that follow each other come as one.",
	}, streamRuns)
}

func streamRuns(c *call, in *listStreamInput) (*streamOutput, error) {
	if c.isDraining() {
		return nil, unavailable()
	}
	first, err := c.runsOf(&in.RunFilter, "", in.Limit)
	if err != nil {
		return nil, err
	}
	return &streamOutput{func(h huma.Context) {
		_, w := humago.Unwrap(h)
		c.sendListChanges(w, in, first)
	}}, nil
}

// listSender is a stream of a list.
type listSender struct {
	*call
	in   *listStreamInput
	long *longAnswer
	// known is what was sent of the page, by run; nil before the first event.
	known map[string][]byte
}

// sendListChanges writes the changes of a list until the reader has gone or is too slow, may
// no longer read, or the server drains.
func (c *call) sendListChanges(w http.ResponseWriter, in *listStreamInput, page *runList) {
	defer c.metrics.stream(1)()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	s := listSender{call: c, in: in, long: newLongAnswer(w)}
	if !s.sendPage(page) {
		return
	}
	// A store that reports changes is read when it has reported one.
	var changed, early <-chan struct{}
	if watch := c.app.Store.Capabilities().Watch; watch != nil {
		reports, stop := watch.Watch(store.TopicCommit, func(string) bool { return true })
		defer stop()
		changed = reports
	}
	beat := time.NewTicker(c.options.Heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(listInterval)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
			if changed != nil && early == nil {
				early = changed
				pause.Reset(listIdle)
				continue
			}
		case <-early:
		case <-beat.C:
			if !c.mayStillRead() || !s.send(": waiting\n\n") {
				return
			}
			continue
		case <-c.draining:
			s.send(fmt.Sprintf("event: server.draining\nretry: %d\ndata: {}\n\n", 1000+rand.IntN(4000)))
			return
		case <-c.Done():
			return
		}
		began := time.Now()
		page, err := c.runsOf(&in.RunFilter, "", in.Limit)
		if err != nil || !s.sendPage(page) {
			return // the reader connects again, and gets the error
		}
		early = nil
		pause.Reset(max(listInterval, listShare*time.Since(began)))
	}
}

func (s *listSender) send(text string) bool {
	_, err := s.long.Write([]byte(text))
	return err == nil && s.long.control.Flush() == nil
}

// sendPage sends what of a page differs from what was sent, and reports whether the stream
// continues.
func (s *listSender) sendPage(page *runList) bool {
	x := listChange{IDs: []string{}, Runs: []app.RunRow{}, Next: page.Next}
	rows := make(map[string][]byte, len(page.Runs))
	for i := range page.Runs {
		r := &page.Runs[i]
		text, err := json.Marshal(r)
		if err != nil {
			return false
		}
		rows[r.Run] = text
		x.IDs = append(x.IDs, r.Run)
		if !bytes.Equal(s.known[r.Run], text) {
			x.Runs = append(x.Runs, *r)
		}
	}
	if s.known != nil && len(x.Runs) == 0 && len(rows) == len(s.known) {
		return true
	}
	s.known = rows
	data, err := json.Marshal(x)
	return err == nil && s.send(fmt.Sprintf("event: runs\ndata: %s\n\n", data))
}
