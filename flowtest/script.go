package flowtest

import (
	"encoding/json"
	"path/filepath"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/recorded"
)

// script has the model answers of a test: turns, or a recording.
type script struct {
	pos     flow.Pos
	inTest  bool
	inOrder []recorded.Turn
	byNode  map[string]recorded.NodeScript
	replay  *recorded.Replay
}

// script reads `script` or `replay`, nil if there is neither.
func (r *fileReader) script(l testKeys) *script {
	from, own := l.defaults, false
	if l.test.Get("script") != nil || l.test.Get("replay") != nil {
		from, own = l.test, true
	}
	only := testKeys{test: from}
	turns, replay := only.get("script"), only.get("replay")
	switch {
	case turns == nil && replay == nil:
		return nil
	case turns != nil && replay != nil:
		r.reportAt(replay, "a test has a script or a replay, not both")
	case replay != nil:
		return r.replay(replay, own)
	}
	s := &script{pos: turns.Pos(), inTest: own}
	switch {
	case turns.IsList():
		s.inOrder = r.turns(turns)
	case turns.IsObject():
		s.byNode = make(map[string]recorded.NodeScript)
		for _, e := range turns.Entries() {
			if r.node(e.Pos, e.Key) == nil {
				continue
			}
			said := recorded.NodeScript{Always: !e.Value.IsList()}
			if said.Always {
				said.Turns = []recorded.Turn{r.turn(e.Value)}
			} else {
				said.Turns = r.turns(e.Value)
			}
			s.byNode[e.Key] = said
		}
	default:
		r.reportAt(turns, "script must be a list of turns, or an object of turns by the path of the node; got %s", show(turns))
	}
	return s
}

func (r *fileReader) replay(d *flow.FileValue, own bool) *script {
	s := &script{pos: d.Pos(), inTest: own}
	path := r.text(d, "replay")
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.path), path)
	}
	var err error
	if s.replay, err = recorded.Open(path); err != nil {
		r.report(d.Pos(), engine.CodeUnreadable, err.Error(), "the path is relative to this file; `weir run --record FILE` writes one")
	}
	return s
}

func (r *fileReader) turns(d *flow.FileValue) []recorded.Turn {
	var out []recorded.Turn
	for _, e := range d.Items() {
		out = append(out, r.turn(e))
	}
	return out
}

// turn reads a text, or an object.
func (r *fileReader) turn(d *flow.FileValue) (t recorded.Turn) {
	if !d.IsObject() {
		t.Message.Text = r.text(d, "a turn")
		return t
	}
	if !r.object(d, "a turn", "text", "json", "reasoning", "calls", "usage", "error") {
		return t
	}
	t.Message.Text, t.Message.Reasoning = r.text(d.Get("text"), "text"), r.text(d.Get("reasoning"), "reasoning")
	if j := d.Get("json"); j != nil {
		if d.Get("text") != nil {
			r.reportAt(j, "a turn has text or json, not both")
		}
		t.Message.Text = r.asJSON(j)
	}
	t.Message.Calls = r.calls(d.Get("calls"))
	if u := d.Get("usage"); u != nil && r.object(u, "usage", "input", "cached", "output", "reasoning") {
		t.Usage = llm.Usage{
			Input: r.count(u.Get("input"), "input"), Cached: r.count(u.Get("cached"), "cached"),
			Output: r.count(u.Get("output"), "output"), Reasoning: r.count(u.Get("reasoning"), "reasoning"),
		}
	}
	if e := d.Get("error"); e != nil {
		t.Error = r.modelError(e)
	}
	if t.Error == nil && t.Message.Text == "" && len(t.Message.Calls) == 0 && d.Get("text") == nil {
		r.reportAt(d, "a turn has text, json, calls or error")
	}
	return t
}

func (r *fileReader) asJSON(d *flow.FileValue) string {
	b, err := json.Marshal(d.Value())
	if err != nil {
		r.reportAt(d, "not JSON: %v", err)
	}
	return string(b)
}

// calls reads the tool calls of a turn: a list, or one.
func (r *fileReader) calls(d *flow.FileValue) []convo.Call {
	if d == nil {
		return nil
	}
	items := []*flow.FileValue{d}
	if d.IsList() {
		items = d.Items()
	}
	var out []convo.Call
	for _, e := range items {
		if !e.IsObject() {
			out = append(out, convo.Call{Name: r.text(e, "a call"), Arguments: "{}"})
			continue
		}
		r.object(e, "a call", "tool", "arguments")
		c := convo.Call{Name: r.text(e.Get("tool"), "tool"), Arguments: "{}"}
		if c.Name == "" {
			r.reportAt(e, "a call has a tool: calls: [{tool: NAME, arguments: {...}}]")
		}
		if a := e.Get("arguments"); a != nil && a.IsText() {
			c.Arguments, _ = a.Text()
		} else if a != nil {
			c.Arguments = r.asJSON(a)
		}
		out = append(out, c)
	}
	return out
}

// modelError reads a code, or an object.
func (r *fileReader) modelError(d *flow.FileValue) *llm.Error {
	e := &llm.Error{Message: "the script says so"}
	if !d.IsObject() {
		e.Code = r.text(d, "error")
	} else if r.object(d, "error", "code", "message") {
		e.Code = r.text(d.Get("code"), "code")
		if m := d.Get("message"); m != nil {
			e.Message = r.text(m, "message")
		}
	}
	switch e.Code {
	case "":
		r.reportAt(d, "an error has a code, as in error: model_overloaded")
	case engine.CodeModelRateLimited, engine.CodeModelOverloaded, engine.CodeModelUnavailable, engine.CodeModelTimeout:
		e.Retry = true
	}
	return e
}
