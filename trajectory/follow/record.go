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

// The kinds of Action of the flow's nodes, besides those of messages.
const (
	KindStep  = "node"  // a node did something
	KindAgent = "agent" // work of a sub-agent; sub is its number
	KindChild = "flow"  // a child run; sub is its number and run its id
)

// recordCompleted records the work of a completed node.
func (f *Follower) recordCompleted(ctx context.Context, at time.Time, e *engine.NodeCompleted) error {
	w := f.running[e.Path]
	if w == nil {
		w = &nodeWork{path: e.Path}
	}
	def, _ := f.options.Flow.NodeAt(e.Path)
	if l := f.composites[e.Path]; l != nil {
		if w.ends = l.ends(); len(w.ends) == 0 {
			w.ends = f.predecessorsOf(e.Path)
		}
		delete(f.composites, e.Path)
		var err error
		if len(w.artifactNotes) > 0 { // one Action declares the results of all iterations
			attrs := map[string]any{trajectory.AttrKind: KindStep, "outputs": shorten(e.Outputs)}
			if def != nil {
				attrs["type"] = def.Type
			}
			if err = f.addAction(at, w, attrs, ""); err == nil {
				err = f.recordDeclared(at, w)
			}
		}
		f.completeWork(w, completedPorts(e.Outputs))
		return err
	}
	messages, err := messagesOf(e.Contexts)
	if err == nil {
		err = f.recordWork(ctx, at, w, def, e, messages)
	}
	if err == nil {
		err = f.recordDeclared(at, w)
	}
	f.completeWork(w, completedPorts(e.Outputs))
	return err
}

// recordWork records the work of a node that completed.
func (f *Follower) recordWork(ctx context.Context, at time.Time, w *nodeWork, def *flow.Node, e *engine.NodeCompleted, messages []convo.Message) error {
	attrs := map[string]any{trajectory.AttrKind: KindStep}
	if def != nil {
		attrs["type"] = def.Type
	}
	if e.Cached {
		attrs["cached"] = true
	}
	switch {
	case def != nil && def.Type == agentType:
		return f.recordAgent(ctx, at, w, attrs, e, messages)
	case def != nil && def.Uses != nil:
		if err := f.recordFailures(w); err != nil {
			return err
		}
		attrs[trajectory.AttrKind], attrs["sub"], attrs["run"] = KindChild, f.options.Agents.Number(w.childPath), w.child
		attrs["outputs"] = shorten(results(e.Outputs))
		if err := f.addAction(at, w, attrs, ""); err != nil {
			return err
		}
		return f.addMessages(at, w, f.main, messages, nil)
	case len(messages) > 0:
		return f.recordMessages(at, w, messages)
	}
	return f.recordAction(at, w, def, e, attrs)
}

// recordAction records the work of a node without messages.
func (f *Follower) recordAction(at time.Time, w *nodeWork, def *flow.Node, e *engine.NodeCompleted, attrs map[string]any) error {
	if err := f.recordFailures(w); err != nil {
		return err
	}
	switch {
	case w.addedNodes:
		return nil
	case len(w.humanAnswers) > 0:
		attrs[trajectory.AttrKind], attrs[trajectory.AttrText] = trajectory.KindInput, joined(w.humanAnswers)
		return f.addAction(at, w, attrs, "")
	case f.isTrivial(w, def, e):
		return nil
	}
	attrs["outputs"] = shorten(e.Outputs)
	if err := f.addAction(at, w, attrs, ""); err != nil {
		return err
	}
	var made []trajectory.Artifact
	for _, n := range slices.Sorted(maps.Keys(w.tools)) {
		made = append(made, w.tools[n].Artifacts...)
	}
	if err := f.recordToolArtifacts(at, w, append(made, w.toolArtifacts...)); err != nil {
		return err
	}
	return f.recordScripts(at, w, def)
}

// results returns the outputs of a node without those that only name their origin: handles of contexts, and the id
// and repeated outputs of a child run.
func results(vs engine.Values) engine.Values {
	var out engine.Values
	for _, v := range vs {
		if _, handle := v.Value.(engine.Handle); !handle && v.Name != "run" && v.Name != "outputs" {
			out = append(out, v)
		}
	}
	return out
}

// isTrivial reports whether the work of a node is not worth recording: it passed values on, or chose no branch.
func (f *Follower) isTrivial(w *nodeWork, def *flow.Node, e *engine.NodeCompleted) bool {
	if def == nil || w.effects > 0 || len(e.State) > 0 || len(w.artifactNotes) > 0 {
		return false
	}
	spec := def.SpecIn(f.options.Types)
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

// addAction adds the Action of a node of the flow.
func (f *Follower) addAction(at time.Time, w *nodeWork, attrs map[string]any, user string) error {
	id, err := f.main.recorder.Add(trajectory.NewNode{
		Type: trajectory.Action, Name: w.path, Relation: trajectory.Triggers, After: f.nextPredecessors(w), Attributes: attrs, At: at, By: f.attribution(w.path, user),
	})
	if err == nil {
		w.ends = []trajectory.ID{id}
	}
	return err
}

// addMessages records messages and the data that their tool calls declared.
func (f *Follower) addMessages(at time.Time, w *nodeWork, s *agentRecorder, messages []convo.Message, after []trajectory.ID) error {
	if after == nil && s == f.main {
		after = f.nextPredecessors(w)
	}
	added, err := s.recorder.AddMessages(trajectory.MessageOptions{By: f.attribution(w.path, ""), At: at, After: after, Attributes: w.attributes}, messages...)
	if s == f.main {
		w.ends = added.Ends
	} else {
		w.agentEnds = added.Ends
	}
	if err != nil {
		return err
	}
	w.calls = append(w.calls, added.Calls...)
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
			if err := f.declareArtifact(at, w, s, call, a, trajectory.ToolOutput); err != nil {
				return err
			}
		}
	}
	return f.describeTools(at, s, messages)
}

// describeTools sets the descriptions of the called tools.
func (f *Follower) describeTools(at time.Time, s *agentRecorder, messages []convo.Message) error {
	if f.options.Describe == nil {
		return nil
	}
	for _, m := range messages {
		for _, c := range m.Calls {
			text := f.options.Describe(c.Name)
			id, ok := s.recorder.FindData(trajectory.Tool, c.Name)
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

// recordAgent records a sub-agent's work: the details in its own trajectory, the request and the answer in that of
// the run.
func (f *Follower) recordAgent(ctx context.Context, at time.Time, w *nodeWork, attrs map[string]any, e *engine.NodeCompleted, messages []convo.Message) error {
	asked, answered := split(messages)
	err := f.addMessages(at, w, f.main, asked, nil)
	if err == nil {
		err = f.recordFailures(w)
	}
	if err != nil {
		return err
	}
	number := f.options.Agents.Number(f.agentRootPath(w.path))
	attrs[trajectory.AttrKind], attrs["sub"] = KindAgent, number
	if m, ok := e.Metadata.Get("agent"); ok {
		attrs["work"] = m
	}
	if err := f.addAction(at, w, attrs, ""); err != nil {
		return err
	}
	if err := f.recordToolArtifacts(at, w, w.toolArtifacts); err != nil {
		return err
	}
	trace, _ := e.Outputs.Get("trace")
	said, err := traceMessages(trace)
	if err == nil {
		err = f.recordAgentMessages(ctx, at, w, number, asked, w.unrecorded(said))
	}
	if err != nil {
		return fmt.Errorf("sub-agent %d: %w", number, err)
	}
	return f.addMessages(at, w, f.main, answered, nil)
}

// recordAgentMessages records messages in the trajectory of a sub-agent. Each piece of work begins with its request.
func (f *Follower) recordAgentMessages(ctx context.Context, at time.Time, w *nodeWork, number int, asked, said []convo.Message) error {
	path := f.agentRootPath(w.path)
	s := f.agentRecorders[path]
	if s == nil {
		k := f.options.Key
		k.Sub = number
		var err error
		if s, err = f.openRecorder(ctx, k, path); err != nil {
			return err
		}
		f.agentRecorders[path] = s
	}
	after := w.agentEnds
	if first := s.recorder.Initial(); first != "" && after == nil {
		after = []trajectory.ID{first}
	} else if first == "" && len(asked) == 0 {
		asked = []convo.Message{{Role: convo.User, Text: path}}
	}
	return f.addMessages(at, w, s, append(asked, said...), after)
}

// split separates the messages to an agent from its answers.
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

// traceMessages returns the messages in the trace of an agent.
func traceMessages(v engine.Value) ([]convo.Message, error) {
	var list []struct {
		Role, Text, Reasoning, Name, Call string
		Failed                            bool
		Calls                             []convo.Call
	}
	if v == nil {
		return nil, nil
	}
	if err := decodeValue(v, &list); err != nil {
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

// recordUnfinished records the work of a node that did not complete: the model answers and tool results that it
// received.
func (f *Follower) recordUnfinished(ctx context.Context, at time.Time, w *nodeWork, kept []engine.ContextChange, mark string) error {
	asked, err := messagesOf(kept)
	if err == nil && len(asked) > 0 {
		err = f.addMessages(at, w, f.main, asked, nil)
	}
	if err != nil {
		return err
	}
	if mark == AttrUnfinished {
		w.attributes = map[string]any{mark: true}
	}
	def, _ := f.options.Flow.NodeAt(w.path)
	if err := f.recordChild(at, w, mark); err != nil {
		return err
	}
	if def == nil || def.Type != agentType {
		if err := f.recordMessages(at, w, w.messages()); err != nil {
			return err
		}
		return f.recordDeclared(at, w)
	}
	if err := f.recordFailures(w); err != nil {
		return err
	}
	messages := w.unrecorded(w.messages())
	if len(messages) == 0 {
		return f.recordDeclared(at, w)
	}
	number := f.options.Agents.Number(f.agentRootPath(w.path))
	attrs := map[string]any{trajectory.AttrKind: KindAgent, "type": agentType, "sub": number, mark: true}
	if err := f.addAction(at, w, attrs, ""); err != nil {
		return err
	}
	return f.recordAgentMessages(ctx, at, w, number, asked, messages)
}

// recordChild records the child run of a node that has no result of it: the node failed, or has not ended.
func (f *Follower) recordChild(at time.Time, w *nodeWork, mark string) error {
	if def, _ := f.options.Flow.NodeAt(w.path); def == nil || def.Uses == nil || w.child == "" {
		return nil
	}
	return f.addAction(at, w, map[string]any{
		trajectory.AttrKind: KindChild, "sub": f.options.Agents.Number(w.childPath), "run": w.child, mark: true,
	}, "")
}

// messages returns the model answers and tool results, in order.
func (w *nodeWork) messages() []convo.Message {
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

// recordScripts records the code that a node ran.
func (f *Follower) recordScripts(at time.Time, w *nodeWork, def *flow.Node) error {
	if def != nil {
		if code, ok := def.With["code"].(string); ok {
			w.scripts = []script{{flow.WithoutIterations(w.path), code, trajectory.HasScript}}
		}
	}
	for _, c := range w.scripts {
		a := trajectory.Artifact{
			Type: trajectory.Script, Name: c.name, Relation: c.relation, Attributes: map[string]any{"code": shortText(c.code)},
		}
		if err := f.declareArtifact(at, w, f.main, w.ends[0], a, c.relation); err != nil {
			return err
		}
	}
	return nil
}

// recordToolArtifacts records the artifacts of tool calls that are in no message, as declared by the Action of the
// calling node.
func (f *Follower) recordToolArtifacts(at time.Time, w *nodeWork, made []trajectory.Artifact) error {
	for _, a := range made {
		if err := f.declareArtifact(at, w, f.main, w.ends[0], a, trajectory.ToolOutput); err != nil {
			return err
		}
	}
	return nil
}

// declareArtifact records an artifact, and adds it to the undescribed ones if it has no description.
func (f *Follower) declareArtifact(at time.Time, w *nodeWork, s *agentRecorder, from trajectory.ID, a trajectory.Artifact, relation trajectory.Relation) error {
	id, err := s.recorder.Declare(f.attribution(w.path, ""), at, from, a, relation)
	if err == nil {
		f.addUndescribed(s, id, a)
	}
	return err
}

// agentRootPath returns the path of an agent's node from the root of the tree of runs.
func (f *Follower) agentRootPath(path string) string {
	if f.options.RootPath == "" {
		return flow.WithoutIterations(path)
	}
	return f.options.RootPath + childSeparator + flow.WithoutIterations(path)
}

// messagesOf returns the messages that changes add to contexts.
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
