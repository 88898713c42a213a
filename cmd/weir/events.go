package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
)

// watcher sees what happens in a run as it happens.
type watcher interface {
	// watch takes items until there are no more and returns the number of the
	// last event, after where there was none.
	watch(items <-chan runner.Item, after int64) (last int64, err error)
	// end is called once, with how far the run has come.
	end(r weir.Result)
}

// watcher is who watches the run with these flags, nil for nobody.
func (d *driving) watcher(run string) watcher {
	switch {
	case d.events:
		return &eventPrinter{run: run, out: d.p.out}
	case isTerminal(d.p.err):
		return newProgress(d.p, d.atWork)
	}
	return nil
}

// eventPrinter writes the run's events, one JSON object a line: run, number,
// at (Unix milliseconds), type, and the event's own fields. Between them it
// tells of model calls that wait, which no journal keeps.
type eventPrinter struct {
	run string
	out io.Writer
}

func (w *eventPrinter) watch(items <-chan runner.Item, last int64) (int64, error) {
	for it := range items {
		if it.Event == nil {
			if err := w.wait(it); err != nil {
				return last, err
			}
			continue
		}
		last = it.Number
		if err := w.print(it.Number, it.At, it.Event); err != nil {
			return last, err
		}
	}
	return last, nil
}

// waits is a model call that waits, as --events prints it: it has no number,
// since it is not of the journal.
type waits struct {
	Run     string `json:"run"`
	At      int64  `json:"at"` // Unix milliseconds
	Type    string `json:"type"`
	Node    string `json:"node"`
	Attempt int    `json:"attempt"`
	Millis  int64  `json:"ms"` // at least
	Why     string `json:"why"`
	About   string `json:"about"`
}

// wait prints live output that tells of a wait, and no other.
func (w *eventPrinter) wait(it runner.Item) error {
	if it.Chunk == nil || it.Chunk.Wait == 0 {
		return nil
	}
	line, err := json.Marshal(waits{
		Run: w.run, At: it.At, Type: "model.waiting", Node: it.Path, Attempt: it.Attempt,
		Millis: it.Chunk.Wait.Milliseconds(), Why: it.Chunk.Why, About: it.Chunk.About,
	})
	if err != nil {
		return err
	}
	if _, err := w.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

func (w *eventPrinter) print(number, at int64, e engine.Event) error {
	line, err := eventLine(w.run, number, at, e)
	if err != nil {
		return err
	}
	if _, err := w.out.Write(line); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

func (w *eventPrinter) end(weir.Result) {}

// eventLine is an event as --events prints it, with a newline.
func eventLine(run string, number, at int64, e engine.Event) ([]byte, error) {
	list, err := engine.EncodeEvents(nil, []engine.Event{e})
	if err != nil {
		return nil, err
	}
	line := fmt.Appendf(nil, `{"run":%q,"number":%d,"at":%d,`, run, number, at)
	line = append(line, list[2:len(list)-1]...) // without "[{" and "]"
	return append(line, '\n'), nil
}
