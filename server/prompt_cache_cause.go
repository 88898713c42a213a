package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// cacheForensics explains why a vendor could not read a call from its prompt cache.
type cacheForensics struct {
	*call
	view    *runner.RunView
	readers map[string]*requestReader // by run
	rounds  []store.Run               // those before this one, newest first; nil until they were read
}

// reader returns the reader of the requests of a run.
func (f *cacheForensics) reader(run string) *requestReader {
	if f.readers == nil {
		f.readers = make(map[string]*requestReader)
	}
	if f.readers[run] == nil {
		f.readers[run] = &requestReader{c: f.call, run: run, read: make(map[string][]runner.ModelCall)}
	}
	return f.readers[run]
}

// explain finds the call before among the earlier ones of the run, or else in the rounds
// before, and sets where the two differ, why, and what that costs.
func (f *cacheForensics) explain(x *promptCache, request json.RawMessage, earlier []*engine.EffectCompleted) error {
	var is sentRequest
	if err := json.Unmarshal(request, &is); err != nil {
		return fmt.Errorf("request of %s: %w", x.Call, err)
	}
	was, input, err := f.reader(f.view.Run.ID).compare(x, &is, earlier)
	if err == nil && was == nil {
		was, input, err = f.compareRounds(x, &is)
	}
	if err != nil || was == nil || x.Place == "" {
		return err
	}
	x.Cause, x.Node = f.cause(x, was, &is)
	x.Lost = lostTokens(x, was, input)
	if m, known := f.app.Model(is.Provider, is.Model); known && m.Price.Known() && m.Price.Cached > 0 {
		x.Cost = int64(float64(x.Lost) * max(0, m.Price.Input-m.Price.Cached))
	}
	return nil
}

// compareRounds compares a call with the newest one of the rounds before.
func (f *cacheForensics) compareRounds(x *promptCache, is *sentRequest) (was *sentRequest, input int, err error) {
	start := f.view.Run.Start
	if start.Session == "" || start.Round < 2 {
		return nil, 0, nil
	}
	if f.rounds == nil {
		f.rounds, err = f.app.Runs(f, store.Filter{Session: start.Session, Before: f.view.Run.ID, Limit: maxRoundsBack})
		if err != nil {
			return nil, 0, err
		}
	}
	for i := range f.rounds {
		v, err := f.app.Inspect(f, f.rounds[i].ID, 0)
		if err != nil {
			return nil, 0, err
		}
		all := modelEffects(v.Commits)
		was, input, err := f.reader(f.rounds[i].ID).compare(x, is, all[max(0, len(all)-maxCallsBack):])
		if err != nil || was != nil {
			return was, input, err
		}
	}
	return nil, 0, nil
}

// cause says what differs, and the node that made it so.
func (f *cacheForensics) cause(x *promptCache, was, is *sentRequest) (cause, node string) {
	own, _ := engine.SplitEffectKey(x.Call)
	i, ok := messageIndex(x.Place)
	if !ok {
		return x.Place, own
	}
	if i >= len(is.Messages) || slices.ContainsFunc(was.Messages[i+1:], func(m json.RawMessage) bool { return bytes.Equal(m, is.Messages[i]) }) {
		return "view", own
	}
	return "message", f.adder(is.Messages[i], own)
}

// messageIndex returns the position of a place such as messages[3].
func messageIndex(place string) (int, bool) {
	text, ok := strings.CutPrefix(place, "messages[")
	i, err := strconv.Atoi(strings.TrimSuffix(text, "]"))
	return i, ok && err == nil
}

// adder returns the node that added a message to a context last, "" if none of the run did:
// then an earlier round had it.
func (f *cacheForensics) adder(sent json.RawMessage, own string) string {
	var m convo.Message
	if json.Unmarshal(sent, &m) != nil {
		return ""
	}
	list := history.NewTimeline(f.view)
	found := ""
	for _, path := range list.Order {
		added, err := app.AddedMessages(list.Nodes[path].Contexts)
		if err != nil {
			return ""
		}
		for i := range added {
			a := &added[i].Message
			if a.Role == m.Role && a.Text == m.Text && a.CallID == m.CallID && (found == "" || path == own) {
				found = path
			}
		}
	}
	return found
}

// lostTokens is the share of the call before that is behind the difference, in tokens.
func lostTokens(x *promptCache, was *sentRequest, input int) int {
	parts := append([]json.RawMessage{was.Tools, was.System}, was.Messages...)
	first := 0 // the part that differs
	switch i, ok := messageIndex(x.Place); {
	case ok:
		first = i + 2
	case x.Place == "system":
		first = 1
	}
	whole, behind := 0, 0
	for i, part := range parts {
		whole += len(part)
		if i > first {
			behind += len(part)
		} else if i == first {
			behind += len(part) - min(x.Byte, len(part))
		}
	}
	if whole == 0 {
		return 0
	}
	return int(int64(input) * int64(behind) / int64(whole))
}
