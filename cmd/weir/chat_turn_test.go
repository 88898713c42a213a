package main

import (
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

func TestACancelledTurnSaysWhetherTheHistoryHasSomethingOfIt(t *testing.T) {
	t.Parallel()
	for n, want := range []string{"the message is not in the history", "what was said stays"} {
		p, screen := typing("")
		v := &turnView{p: p}
		v.closing(&weir.TurnState{Result: weir.Result{Status: engine.Cancelled}, Messages: make([]store.SessionMessage, n)})
		if !strings.Contains(screen.String(), want) {
			t.Errorf("with %d messages: %q", n, screen)
		}
	}
}
