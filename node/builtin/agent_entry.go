package builtin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// runEntry processes one entry of a queue. With insist, the failure of a tool or flow is
// returned as an error; otherwise the model receives the error and the work continues.
func (w *agentWorker) runEntry(name string, t *queuedTask, insist bool) (over bool, err error) {
	switch {
	case t.tool != nil:
		return false, w.callTool(name, t, insist)
	case t.flow != "":
		return false, w.runChild(name, t, insist)
	}
	text := t.instruction
	if t.step > 0 {
		text = fmt.Sprintf("Step %d: %s", t.step, text)
	}
	message := &convo.Message{Role: convo.User, Text: text, Metadata: entryNote(name, "", "", nil)}
	if name == "todo" {
		return w.answerTurn(message, false)
	}
	_, err = w.runTurn(message, nil)
	return false, err
}

// callTool calls a tool as the agent's own call, and adds the result to the lane.
func (w *agentWorker) callTool(name string, t *queuedTask, insist bool) error {
	w.directCalls++
	w.counter.count(t.tool.Name)
	call := convo.Call{Name: t.tool.Name, Arguments: t.arguments}
	r, err := node.CallTool(w.directHost, w.directCalls, t.tool, call, insist)
	failed, isFailure := errors.AsType[*engine.Error](err)
	if err != nil && (!isFailure || failed.Code != engine.CodeToolFailed) {
		return err
	}
	if isFailure {
		r.Text, r.Failed = failed.Message, true
	}
	note := entryNote(name, "tool", t.tool.Name, r.Metadata)
	head := fmt.Sprintf("The tool %s was called with %s.", t.tool.Name, t.arguments)
	if addErr := w.addResult(name, head, r.Text, r.Failed, note); addErr != nil || err != nil {
		return firstError(addErr, err)
	}
	if r.Failed && insist { // a person refused it
		return permanentError(engine.CodeToolFailed, "%s", r.Text)
	}
	return nil
}

// entryChildName is the name of the child runs of entries. It is part of the ids of their
// questions.
const entryChildName = "flow"

// runChild runs a flow as a child run, and adds its output to the lane. An exhausted budget
// and a child that a person cancelled always fail the agent.
func (w *agentWorker) runChild(name string, t *queuedTask, insist bool) error {
	r, err := w.ctx.Child(w.prefix+entryChildName, node.Child{Flow: t.flow, Inputs: t.in, Isolation: "fresh", KeepFailed: !insist})
	if err != nil {
		return err
	}
	w.report.runs = append(w.report.runs, r.Run)
	note := entryNote(name, "flow", t.flow, map[string]any{"run": r.Run})
	head := fmt.Sprintf("The flow %s was run with %s.", t.flow, jsonText(t.in.Map()))
	if r.Error == nil {
		return w.addResult(name, head, childOutputText(r), false, note)
	}
	spent := r.Error.Code == engine.CodeBudget && !strings.Contains(r.Error.Budget, "|")
	if r.Status == engine.Cancelled || spent {
		return r.Error
	}
	if addErr := w.addResult(name, head, errorText(r.Error), true, note); addErr != nil {
		return addErr
	}
	if !insist {
		return nil
	}
	if r.Error.Hint == "" {
		return withHint(r.Error, "`%s` shows the child", engine.CommandLine("show", r.Run))
	}
	return r.Error
}

// childOutputText returns the output of a child as text for a model: a single text
// unchanged, several outputs as JSON, and without outputs the last message.
func childOutputText(r node.ChildResult) string {
	text := r.Answer
	if len(r.Outputs) == 1 {
		text = node.TextOf(r.Outputs[0].Value)
	} else if len(r.Outputs) > 1 {
		text = jsonText(r.Outputs.Map())
	}
	return tool.Cut(tool.Clean(text), tool.DefaultMaxOutput)
}

// addResult adds the result of an entry to the lane, marked as data.
func (w *agentWorker) addResult(name, head, text string, failed bool, note convo.Metadata) error {
	how := " Its result:\n"
	if failed {
		how = " It failed:\n"
		note["failed"] = true
		if name == "todo" {
			w.report.todo.failed++
		}
	}
	_, err := w.lane.Add(convo.Message{Role: convo.User, Text: head + how + convo.Fence(text, "result"), Metadata: note})
	return err
}

// entryNote is stored with the message of an entry and not sent to the model.
func entryNote(name, kind, of string, more map[string]any) convo.Metadata {
	note := convo.Metadata{"queue": name}
	if kind != "" {
		note[kind] = of
	}
	maps.Copy(note, more)
	return note
}

// entryError returns the failure of an entry, with its position in the settings.
func entryError(name string, i int, t *queuedTask, err error) error {
	failed, ok := errors.AsType[*engine.Error](err)
	if !ok {
		return err
	}
	e := *failed
	e.Message = fmt.Sprintf("%s.%d (%s): %s", name, i, t.describe(), e.Message)
	return &e
}

// errorText returns the reason of a failure. It omits the node, which is the agent itself.
func errorText(err error) string {
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return fmt.Sprintf("%s (%s)", e.Message, e.Code)
	}
	return err.Error()
}

// runPost processes the queue post after the work has ended with work, which may be an
// error. It processes every entry. The agent then ends as the work did, or else with the
// first failure of an entry.
func (w *agentWorker) runPost(worked error) error {
	w.closed = true
	w.report.todo.remaining = w.entriesLeft()
	if len(w.post) == 0 {
		return worked
	}
	if worked != nil {
		if _, err := w.lane.Add(convo.Message{Role: convo.User, Text: emptyQueueText + errorText(worked)}); err != nil {
			return err
		}
	}
	if err := w.limits.start(); err != nil {
		return err
	}
	after := worked != nil // another attempt does not continue with its result
	var first error
	for i := range w.post {
		w.setEffectPrefix(w.postPrefix(i, after))
		w.report.post.done++
		_, err := w.runEntry("post", &w.post[i], true)
		if err = w.limitError(err); err == nil {
			continue
		}
		if !w.isOver(err) {
			return err
		}
		after = true
		err = entryError("post", i, &w.post[i], err)
		w.report.post.failed++
		w.report.failures = append(w.report.failures, errorText(err))
		first = cmp.Or(first, err)
	}
	return cmp.Or(worked, first)
}

// postPrefix returns the prefix of the effect names of an entry. After a failure it
// contains the attempt number: the next attempt processes the entry again, in a different
// state.
func (w *agentWorker) postPrefix(i int, after bool) string {
	if after {
		return fmt.Sprintf("post.%d@%d.", i+1, w.ctx.Info().Attempt)
	}
	return fmt.Sprintf("post.%d.", i+1)
}
