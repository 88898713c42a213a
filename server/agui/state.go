package agui

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
)

// stateShare bounds the time that a stream spends with reading the state, as a share of the time of the run.
const stateShare = 10

// sharedState is the state that the client has.
type sharedState struct {
	has  map[string]any // nil before the first snapshot
	next time.Time      // when it is read again at the earliest
}

// followState sends the state when the round begins, and what a node changes of it when the node completes. If reading it takes long,
// some changes are sent later, at the latest when the round rests.
func (e *events) followState(it *weir.Item) error {
	if it.PathPrefix != "" || it.Event == nil || len(e.round.flow.State) == 0 {
		return nil
	}
	done, ok := it.Event.(*engine.NodeCompleted)
	if e.state.has != nil && (!ok || len(done.State) == 0 && strings.ContainsAny(done.Path, "#/")) {
		return nil
	}
	if time.Now().Before(e.state.next) {
		return nil
	}
	return e.sendState(it.Run, it.Number)
}

// sendState sends the state as it is after an event of a run, 0 for the newest: a snapshot at first, then what differs.
func (e *events) sendState(run string, at int64) error {
	if run == "" {
		return nil
	}
	begun := time.Now()
	v, err := e.round.c.App().Inspect(e.round.detached(), run, at)
	if err != nil {
		return err
	}
	e.state.next = time.Now().Add(stateShare * time.Since(begun))
	now, err := plainState(app.StateValues(v.Run.State()))
	if err != nil {
		return err
	}
	had := e.state.has
	switch e.state.has = now; {
	case had == nil && len(now) == 0:
		e.state.has = nil
		return nil
	case had == nil:
		return e.send("STATE_SNAPSHOT", map[string]any{"snapshot": now})
	}
	if delta := deltaOf("", had, now); len(delta) > 0 {
		return e.send("STATE_DELTA", map[string]any{"delta": delta})
	}
	return nil
}

// plainState returns the state as its JSON is decoded.
func plainState(list engine.Values) (out map[string]any, err error) {
	data, err := json.Marshal(list)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, err
}

// deltaOf returns the operations of RFC 6902 that make one object another. Lists and other values that differ are replaced, except
// that a list which has only grown gets what is new.
func deltaOf(path string, from, to map[string]any) (out []any) {
	for _, key := range sortedKeys(from, to) {
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		a, had := from[key]
		b, has := to[key]
		switch {
		case !has:
			out = append(out, map[string]any{"op": "remove", "path": at})
		case !had:
			out = append(out, map[string]any{"op": "add", "path": at, "value": b})
		default:
			out = append(out, changeOf(at, a, b)...)
		}
	}
	return out
}

func changeOf(at string, a, b any) (out []any) {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	before, wasObject := a.(map[string]any)
	after, isObject := b.(map[string]any)
	if wasObject && isObject {
		return deltaOf(at, before, after)
	}
	list, wasList := a.([]any)
	longer, isList := b.([]any)
	if wasList && isList && len(longer) > len(list) && reflect.DeepEqual(list, longer[:len(list)]) {
		for _, v := range longer[len(list):] {
			out = append(out, map[string]any{"op": "add", "path": at + "/-", "value": v})
		}
		return out
	}
	return []any{map[string]any{"op": "replace", "path": at, "value": b}}
}

func sortedKeys(maps ...map[string]any) (keys []string) {
	for _, m := range maps {
		for key := range m { // order: sorted below
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
