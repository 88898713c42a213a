package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
)

// watcher sees what happens in a run as it happens.
type watcher interface {
	// watch takes items until there are no more.
	watch(items <-chan runner.Item) error
	// complete is called once, with how far the run has come.
	complete(r weir.Result)
}

// watcher returns the watcher of the run for these flags, nil for none.
func (d *runDriver) watcher() watcher {
	switch {
	case d.events:
		return &eventPrinter{out: d.p.out}
	case isTerminal(d.p.err):
		return newProgress(d.p, d.runningNodes)
	}
	return nil
}

// eventPrinter writes what is seen of the run, one JSON object a line, as Item.MarshalJSON
// gives it: events, and of live output, which no journal keeps, the waits of model calls.
type eventPrinter struct {
	out io.Writer
}

func (w *eventPrinter) watch(items <-chan runner.Item) error {
	for it := range items {
		if it.Event == nil && (it.Chunk == nil || it.Chunk.Wait == 0) {
			continue
		}
		if err := w.print(it); err != nil {
			return err
		}
	}
	return nil
}

func (w *eventPrinter) print(it runner.Item) error {
	e := json.NewEncoder(w.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(it); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

func (w *eventPrinter) complete(weir.Result) {}
