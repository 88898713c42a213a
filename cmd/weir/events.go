package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

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
// at (Unix milliseconds), type, and the event's own fields. Those of a child run
// have its id, its own numbers, and in above what stands before its paths in the
// tree, "review>". Between them it tells of model calls that wait, which no journal
// keeps.
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
		if it.Run == "" {
			last = it.Number
		}
		if err := w.print(it); err != nil {
			return last, err
		}
	}
	return last, nil
}

// waits is a model call that waits, as --events prints it: it has no number,
// since it is not of the journal.
type waits struct {
	Run     string `json:"run"`
	Above   string `json:"above,omitempty"`
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
	at := strings.LastIndexByte(it.Path, '>') + 1
	line, err := json.Marshal(waits{
		Run: cmp.Or(it.Run, w.run), Above: it.Path[:at], At: it.At, Type: "model.waiting", Node: it.Path[at:], Attempt: it.Attempt,
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

func (w *eventPrinter) print(it runner.Item) error {
	line, err := eventLine(cmp.Or(it.Run, w.run), it.Path, it.Number, it.At, it.Event)
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
func eventLine(run, above string, number, at int64, e engine.Event) ([]byte, error) {
	list, err := engine.EncodeEvents(nil, []engine.Event{e})
	if err != nil {
		return nil, err
	}
	line := fmt.Appendf(nil, `{"run":%s,"number":%d,"at":%d,`, quoted(run), number, at)
	if above != "" {
		line = fmt.Appendf(line, `"above":%s,`, quoted(above))
	}
	line = append(line, list[2:len(list)-1]...) // without "[{" and "]"
	return append(line, '\n'), nil
}

// quoted is a text as JSON.
func quoted(s string) []byte {
	b, _ := engine.AppendValue(nil, s) // text always can be
	return b
}
