package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/node/queue"
	"github.com/weir-run/weir/tool"
)

// The tools with which a model adds to the queue and lists it.
const (
	addTool  = "addTodo"
	listTool = "listTodo"
)

// makeQueueTools returns the tools of the queue. They have no effect outside the node:
// queue.Host calls them in the order of the model's answer.
func (w *agentWorker) makeQueueTools() []*tool.Tool {
	properties := map[string]any{"say": settingSchema("string", "What is to be done, as an instruction to yourself.")}
	about := "Puts one step at the end of the queue of work that is done after this: an instruction (say)"
	if len(w.offeredTools) > 0 {
		properties["tool"] = map[string]any{"type": "string", "enum": anyOf(w.toolNames()), "description": "A tool that is called."}
		properties["arguments"] = settingSchema("object", "The arguments of the tool.")
		about += ", a tool call (tool, arguments)"
	}
	if len(w.flows) > 0 {
		properties["flow"] = map[string]any{"type": "string", "enum": anyOf(w.flowNames()), "description": "A flow that is run."}
		properties["in"] = settingSchema("object", "The inputs of the flow.")
		about += ", a flow (flow, in)"
	}
	about += ". Steps are done in the order in which they were added; you see what came of each."
	lines := []string{about}
	for _, f := range w.flows {
		lines = append(lines, "The flow "+f.String())
	}
	return []*tool.Tool{
		{Name: addTool, Description: strings.Join(lines, "\n"), Parameters: objectSchema(properties), ReadOnly: true, Call: w.add},
		{
			Name: listTool, Description: "Tells what waits in the queue of work, in order.",
			Parameters: objectSchema(map[string]any{}), ReadOnly: true, Call: w.list,
		},
	}
}

func anyOf(names []string) []any {
	out := make([]any, len(names))
	for i, n := range names {
		out[i] = n
	}
	return out
}

// add returns the function of addTool.
func (w *agentWorker) add(_ context.Context, call tool.Call) (string, error) {
	var o modelEntry
	d := json.NewDecoder(bytes.NewReader([]byte(call.Arguments)))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return "", fmt.Errorf("the step cannot be read: %w", err)
	}
	t, err := w.taskFromModel(&o)
	if err != nil {
		return "", err
	}
	if w.closed {
		return "", errors.New("the work is over: nothing more is added to the queue")
	}
	if err := w.todo.Add(t); err != nil {
		w.report.todo.refused++
		if errors.Is(err, queue.ErrFull) {
			err = fmt.Errorf("%w. Nothing was added: do it now, or leave it", err)
		}
		return "", err
	}
	w.report.todo.added++
	return fmt.Sprintf("It is number %d of those that wait; %d more may be added.", w.todo.Len(), w.todo.Capacity()-w.todo.Len()), nil
}

// list returns the function of listTool.
func (w *agentWorker) list(context.Context, tool.Call) (string, error) {
	waiting := make([]any, 0, w.todo.Len())
	for _, t := range w.todo.Entries() {
		waiting = append(waiting, t.String())
	}
	return jsonText(map[string]any{"waiting": waiting, "capacity": int64(w.todo.Capacity())}), nil
}
