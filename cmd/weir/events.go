package main

import (
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
// at (Unix milliseconds), type, and the event's own fields.
type eventPrinter struct {
	run string
	out io.Writer
}

func (w *eventPrinter) watch(items <-chan runner.Item, last int64) (int64, error) {
	for it := range items {
		if it.Event == nil {
			continue
		}
		last = it.Number
		if err := w.print(it.Number, it.At, it.Event); err != nil {
			return last, err
		}
	}
	return last, nil
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
