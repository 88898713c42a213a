package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/trajectory"
)

// The kinds of Action that nodes of the flow make, beside those of messages.
const (
	Step  = "node"  // a node did something
	Agent = "agent" // a sub-agent worked; sub is its number
	Child = "flow"  // a child run; sub is its number and run its id
)

// completed records what a node of the flow did.
func (f *Follower) completed(ctx context.Context, at time.Time, e *engine.NodeCompleted) error {
	w := f.open[e.Path]
	if w == nil {
		w = &work{path: e.Path}
	}
	def, _ := definition(f.o.Flow, e.Path)
	if l := f.loops[e.Path]; l != nil {
		if w.ends = l.ends(); len(w.ends) == 0 {
			w.ends = f.before(e.Path)
		}
		delete(f.loops, e.Path)
		var err error
		if len(w.notes) > 0 { // what came of all iterations is declared by one Action
			attrs := map[string]any{trajectory.Kind: Step, "outputs": shorten(e.Outputs)}
			if def != nil {
				attrs["type"] = def.Type
			}
			if err = f.act(at, w, attrs, ""); err == nil {
				err = f.declared(at, w)
			}
		}
		f.close(w, completed(e.Outputs))
		return err
	}
	messages, err := messagesOf(e.Contexts)
	if err == nil {
		err = f.did(ctx, at, w, def, e, messages)
	}
	if err == nil {
		err = f.declared(at, w)
	}
	f.close(w, completed(e.Outputs))
	return err
}

// did records the work of a node that completed.
func (f *Follower) did(ctx context.Context, at time.Time, w *work, def *flow.Node, e *engine.NodeCompleted, messages []convo.Message) error {
	attrs := map[string]any{trajectory.Kind: Step}
	if def != nil {
		attrs["type"] = def.Type
	}
	if e.Cached {
		attrs["cached"] = true
	}
	switch {
	case def != nil && def.Type == agentType:
		return f.agent(ctx, at, w, attrs, e, messages)
	case def != nil && def.Uses != nil:
		if err := f.slipped(w); err != nil {
			return err
		}
		attrs[trajectory.Kind], attrs["sub"], attrs["run"] = Child, f.o.Agents.Number(w.place), w.child
		attrs["outputs"] = shorten(results(e.Outputs))
		if err := f.act(at, w, attrs, ""); err != nil {
			return err
		}
		return f.say(at, w, f.main, messages, nil)
	case len(messages) > 0:
		return f.tell(at, w, messages)
	}
	return f.acted(at, w, def, e, attrs)
}

// acted records the work of a node that said nothing.
func (f *Follower) acted(at time.Time, w *work, def *flow.Node, e *engine.NodeCompleted, attrs map[string]any) error {
	if err := f.slipped(w); err != nil {
		return err
	}
	switch {
	case w.byHand:
		return nil
	case len(w.said) > 0:
		attrs[trajectory.Kind], attrs[trajectory.Text] = trajectory.Input, joined(w.said)
		return f.act(at, w, attrs, "")
	case f.silent(w, def, e):
		return nil
	}
	attrs["outputs"] = shorten(e.Outputs)
	if err := f.act(at, w, attrs, ""); err != nil {
		return err
	}
	var made []trajectory.Artifact
	for _, n := range slices.Sorted(maps.Keys(w.tools)) {
		made = append(made, w.tools[n].Artifacts...)
	}
	if err := f.byTools(at, w, append(made, w.beside...)); err != nil {
		return err
	}
	return f.scripts(at, w, def)
}

// results are what a node gave, without what says only where it comes from: handles
// of contexts, and of a child run its id and its outputs once more.
func results(vs engine.Values) engine.Values {
	var out engine.Values
	for _, v := range vs {
		if _, handle := v.Value.(engine.Handle); !handle && v.Name != "run" && v.Name != "outputs" {
			out = append(out, v)
		}
	}
	return out
}

// silent reports whether a node did nothing that anybody would ask about: it
// passed on values, or chose nothing.
func (f *Follower) silent(w *work, def *flow.Node, e *engine.NodeCompleted) bool {
	if def == nil || w.effects > 0 || len(e.State) > 0 || len(w.notes) > 0 {
		return false
	}
	spec := def.SpecIn(f.o.Types)
	if spec == nil || !spec.Inline && !spec.NewContext {
		return false
	}
	for _, p := range spec.PortsOf(def).Out {
		if p.Branch {
			return false
		}
	}
	return true
}

// act makes the Action of a node of the flow.
func (f *Follower) act(at time.Time, w *work, attrs map[string]any, user string) error {
	id, err := f.main.recorder.Add(trajectory.New{
		Type: trajectory.Action, Name: w.path, Relation: trajectory.Triggers, After: f.after(w), Attributes: attrs, At: at, By: f.by(w.path, user),
	})
	if err == nil {
		w.ends = []trajectory.ID{id}
	}
	return err
}

// say records messages, and the data that the tools declared which they called.
func (f *Follower) say(at time.Time, w *work, s *sub, messages []convo.Message, after []trajectory.ID) error {
	if after == nil && s == f.main {
		after = f.after(w)
	}
	told, err := s.recorder.Say(trajectory.Said{By: f.by(w.path, ""), At: at, After: after, Attributes: w.marks}, messages...)
	if s == f.main {
		w.ends = told.Ends
	} else {
		w.within = told.Ends
	}
	if err != nil {
		return err
	}
	w.calls = append(w.calls, told.Calls...)
	for i, call := range w.calls {
		result, ended := w.tools[i+1]
		if !ended || w.declared[i+1] {
			continue
		}
		if w.declared == nil {
			w.declared = map[int]bool{}
		}
		w.declared[i+1] = true
		for _, a := range result.Artifacts {
			if err := f.declare(at, w, s, call, a, trajectory.ToolOutput); err != nil {
				return err
			}
		}
	}
	return f.describeTools(at, s, messages)
}

// describeTools says of the tools that were called what they do.
func (f *Follower) describeTools(at time.Time, s *sub, messages []convo.Message) error {
	if f.o.Describe == nil {
		return nil
	}
	for _, m := range messages {
		for _, c := range m.Calls {
			text := f.o.Describe(c.Name)
			id, ok := s.recorder.Data(trajectory.Tool, c.Name)
			if !ok || text == "" {
				continue
			}
			if err := s.recorder.Edit(id, trajectory.Edit{Description: &text}, trajectory.Attribution{}, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// agent records a sub-agent's work: in its own trajectory what it did, in the run's
// that it was asked and what it answered.
func (f *Follower) agent(ctx context.Context, at time.Time, w *work, attrs map[string]any, e *engine.NodeCompleted, messages []convo.Message) error {
	asked, answered := split(messages)
	err := f.say(at, w, f.main, asked, nil)
	if err == nil {
		err = f.slipped(w)
	}
	if err != nil {
		return err
	}
	number := f.o.Agents.Number(f.place(w.path))
	attrs[trajectory.Kind], attrs["sub"] = Agent, number
	if m, ok := e.Metadata.Get("agent"); ok {
		attrs["work"] = m
	}
	if err := f.act(at, w, attrs, ""); err != nil {
		return err
	}
	if err := f.byTools(at, w, w.beside); err != nil {
		return err
	}
	trace, _ := e.Outputs.Get("trace")
	said, err := traced(trace)
	if err == nil {
		err = f.work(ctx, at, w, number, asked, w.fresh(said))
	}
	if err != nil {
		return fmt.Errorf("sub-agent %d: %w", number, err)
	}
	return f.say(at, w, f.main, answered, nil)
}

// work records messages in the trajectory of a sub-agent. Each time it works begins
// with what it is asked.
func (f *Follower) work(ctx context.Context, at time.Time, w *work, number int, asked, said []convo.Message) error {
	path := f.place(w.path)
	s := f.subs[path]
	if s == nil {
		k := f.o.Key
		k.Sub = number
		var err error
		if s, err = f.recorder(ctx, k, path); err != nil {
			return err
		}
		f.subs[path] = s
	}
	after := w.within
	if first := s.recorder.Initial(); first != "" && after == nil {
		after = []trajectory.ID{first}
	} else if first == "" && len(asked) == 0 {
		asked = []convo.Message{{Role: convo.User, Text: path}}
	}
	return f.say(at, w, s, append(asked, said...), after)
}

// split parts what an agent was asked from what it answered.
func split(messages []convo.Message) (asked, answered []convo.Message) {
	for _, m := range messages {
		if m.Role == convo.Assistant {
			answered = append(answered, m)
		} else {
			asked = append(asked, m)
		}
	}
	return asked, answered
}

// traced are the messages in the trace of an agent.
func traced(v engine.Value) ([]convo.Message, error) {
	var list []struct {
		Role, Text, Reasoning, Name, Call string
		Failed                            bool
		Calls                             []convo.Call
	}
	if v == nil {
		return nil, nil
	}
	if err := fill(v, &list); err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	out := make([]convo.Message, len(list))
	for i, m := range list {
		out[i] = convo.Message{
			Role: convo.Role(m.Role), Text: m.Text, Reasoning: m.Reasoning, Calls: m.Calls,
			Name: m.Name, CallID: m.Call, Failed: m.Failed,
		}
	}
	return out, nil
}

// unfinished records what a node did that did not complete: the answers of models
// and the results of tools that it had.
func (f *Follower) unfinished(ctx context.Context, at time.Time, w *work, kept []engine.ContextChange, mark string) error {
	asked, err := messagesOf(kept)
	if err == nil && len(asked) > 0 {
		err = f.say(at, w, f.main, asked, nil)
	}
	if err != nil {
		return err
	}
	if mark == Unfinished {
		w.marks = map[string]any{mark: true}
	}
	def, _ := definition(f.o.Flow, w.path)
	if err := f.begat(at, w, mark); err != nil {
		return err
	}
	if def == nil || def.Type != agentType {
		if err := f.tell(at, w, w.messages()); err != nil {
			return err
		}
		return f.declared(at, w)
	}
	if err := f.slipped(w); err != nil {
		return err
	}
	messages := w.fresh(w.messages())
	if len(messages) == 0 {
		return f.declared(at, w)
	}
	number := f.o.Agents.Number(f.place(w.path))
	attrs := map[string]any{trajectory.Kind: Agent, "type": agentType, "sub": number, mark: true}
	if err := f.act(at, w, attrs, ""); err != nil {
		return err
	}
	return f.work(ctx, at, w, number, asked, messages)
}

// begat records the child run of a node that has nothing of it: it failed, or has
// not ended.
func (f *Follower) begat(at time.Time, w *work, mark string) error {
	if def, _ := definition(f.o.Flow, w.path); def == nil || def.Uses == nil || w.child == "" {
		return nil
	}
	return f.act(at, w, map[string]any{
		trajectory.Kind: Child, "sub": f.o.Agents.Number(w.place), "run": w.child, mark: true,
	}, "")
}

// messages are the answers of models and the results of tools, in order.
func (w *work) messages() []convo.Message {
	var out []convo.Message
	calls := 0
	for n := 1; ; n++ {
		m, ok := w.answers[n]
		if !ok {
			return out
		}
		out = append(out, m)
		for _, c := range m.Calls {
			calls++
			if r, ok := w.tools[calls]; ok {
				out = append(out, convo.Message{Role: convo.Tool, Name: c.Name, CallID: c.ID, Text: r.Text, Failed: r.Failed})
			}
		}
	}
}

// scripts records the code that a node ran.
func (f *Follower) scripts(at time.Time, w *work, def *flow.Node) error {
	if def != nil {
		if code, ok := def.With["code"].(string); ok {
			w.scripts = []script{{static(w.path), code, trajectory.HasScript}}
		}
	}
	for _, c := range w.scripts {
		a := trajectory.Artifact{
			Type: trajectory.Script, Name: c.name, Relation: c.relation, Attributes: map[string]any{"code": shortText(c.code)},
		}
		if err := f.declare(at, w, f.main, w.ends[0], a, c.relation); err != nil {
			return err
		}
	}
	return nil
}

// byTools records what tools declared whose calls are in no message: from the Action of
// the node that called them.
func (f *Follower) byTools(at time.Time, w *work, made []trajectory.Artifact) error {
	for _, a := range made {
		if err := f.declare(at, w, f.main, w.ends[0], a, trajectory.ToolOutput); err != nil {
			return err
		}
	}
	return nil
}

// declare records an artifact, and remembers it where nothing describes it.
func (f *Follower) declare(at time.Time, w *work, s *sub, from trajectory.ID, a trajectory.Artifact, relation trajectory.Relation) error {
	id, err := s.recorder.Declare(f.by(w.path, ""), at, from, a, relation)
	if err == nil {
		f.noticed(s, id, a)
	}
	return err
}

// place is the path of an agent's node down from the root of the tree of runs.
func (f *Follower) place(path string) string {
	if f.o.Above == "" {
		return static(path)
	}
	return f.o.Above + below + static(path)
}

// messagesOf are the messages that changes add to contexts.
func messagesOf(changes []engine.ContextChange) ([]convo.Message, error) {
	var out []convo.Message
	for i := range changes {
		switch b := changes[i].Body.(type) {
		case *convo.Change:
			out = append(out, b.Append...)
		case convo.Change:
			out = append(out, b.Append...)
		case json.RawMessage:
			var c convo.Change
			if err := json.Unmarshal(b, &c); err != nil {
				return nil, fmt.Errorf("read the change of context %s: %w", changes[i].ID, err)
			}
			out = append(out, c.Append...)
		}
	}
	return out, nil
}
