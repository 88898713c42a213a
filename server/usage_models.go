package server

import (
	"fmt"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// usageTime bounds how long a request for the usage of models reads journals.
const usageTime = 3 * time.Second

// modelUsage adds up what calls of models cost, as journals have it.
type modelUsage struct {
	*call
	sums *usageSums
	end  time.Time
}

// addRun adds the usage of a root run and of its child runs. What the journals do not say
// which model it was, such as calls that failed, has no name.
func (m *modelUsage) addRun(r *store.Run) (more bool, err error) {
	if time.Now().After(m.end) {
		return false, nil
	}
	rest := r.Head.Usage
	named, err := m.addTree(r)
	if err != nil {
		return false, err
	}
	rest = engine.Usage{
		Calls: max(0, rest.Calls-named.Calls), Input: max(0, rest.Input-named.Input), Cached: max(0, rest.Cached-named.Cached),
		Output: max(0, rest.Output-named.Output), Reasoning: max(0, rest.Reasoning-named.Reasoning),
		CostMicros: max(0, rest.CostMicros-named.CostMicros), Estimated: max(0, rest.Estimated-named.Estimated),
	}
	if rest != (engine.Usage{}) {
		m.sums.add("", rest, 1)
	}
	return true, nil
}

// addTree adds the calls of a run and its child runs that name their model, and returns
// their usage.
func (m *modelUsage) addTree(r *store.Run) (named engine.Usage, err error) {
	by, err := m.callsOf(r)
	if err != nil {
		return named, err
	}
	for model, u := range by { // order: sums do not depend on it
		m.sums.add(model, u, 1)
		named = named.Add(u)
	}
	f := store.Filter{Parent: r.ID, Limit: usagePage}
	for {
		page, err := m.app.Runs(m, f)
		if err != nil {
			return named, err
		}
		for i := range page {
			u, err := m.addTree(&page[i])
			if err != nil {
				return named, err
			}
			named = named.Add(u)
		}
		if len(page) < f.Limit {
			return named, nil
		}
		f.Before = page[len(page)-1].ID
	}
}

// callsOf returns the usage of the run's own model calls by the model that answered. What a
// fork shares with another run is that one's.
func (m *modelUsage) callsOf(r *store.Run) (map[string]engine.Usage, error) {
	by := make(map[string]engine.Usage)
	if r.Head.Usage.Calls == 0 {
		return by, nil
	}
	var shared int64
	if r.Base != nil {
		shared = r.Base.Seq
	}
	for commit, err := range m.app.Store.Commits(m, r.ID, shared) {
		if err != nil {
			return nil, fmt.Errorf("usage of run %s: %w", r.ID, err)
		}
		for _, e := range commit.Events {
			switch e := e.(type) {
			case *engine.RunForked: // the events before it are those of the original
				clear(by)
			case *engine.EffectCompleted:
				if model := modelOfAnswer(e.Result); model != "" && e.Usage != nil {
					by[model] = by[model].Add(*e.Usage)
				}
			}
		}
	}
	return by, nil
}

// modelOfAnswer is the model in the recorded answer of a call, "" for other values.
func modelOfAnswer(v engine.Value) string {
	answer, _ := v.(map[string]any)
	if answer["message"] == nil {
		return ""
	}
	model, _ := answer["model"].(string)
	return model
}
