package builtin

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/queue"
	"github.com/weir-run/weir/tool"
)

// agentWorker processes the queues of an agent during one entry into an attempt. Its
// decisions depend only on settings, inputs and recorded results, so every entry makes the
// same decisions. It belongs to the node's goroutine.
type agentWorker struct {
	n    *agentNode
	ctx  *node.Ctx
	lane *convo.Manager
	base llm.Turn // what all turns have in common
	// demands are those of the client on the answer.
	demands answerDemands

	offeredTools []*tool.Tool // to the model, the queue's own not among them
	tools        map[string]*tool.Tool
	flows        []queueableFlow
	orderedTools []*tool.Tool // the queue's own

	pre, post  []queuedTask
	todo       *queue.Queue[queuedTask]
	closed     bool // no more is added
	notStarted int  // entries that were taken out and not begun

	counter     *countingHost
	host        *queue.Host
	directHost  llm.Host // for calls of tools that are the agent's own
	directCalls int      // how many of those there were
	prefix      string   // of the names of effects
	limits      callLimits
	last        llm.Result // the newest turn of the loop
	report      queueReports
}

// The messages that the agent itself sends to the model.
const (
	continueText    = "These were preparations. Now answer what was said before them."
	finalAnswerText = "That was the last step. Now give the final answer to what was asked at first."
	emptyQueueText  = "The work above ended with a failure: "
)

// newWorker reads the settings into queues. It returns an error before anything is spent if
// an entry cannot be processed.
func (n *agentNode) newWorker(ctx *node.Ctx, m *convo.Manager) (*agentWorker, error) {
	w := &agentWorker{n: n, ctx: ctx, lane: forkLane(ctx, m), todo: queue.New[queuedTask](n.Queue.Capacity)}
	if err := w.findTools(); err != nil {
		return nil, err
	}
	if err := w.loadQueues(); err != nil {
		return nil, err
	}
	var err error
	if w.base, err = n.turn(ctx, m); err != nil {
		return nil, err
	}
	if n.offersTools() {
		w.orderedTools = w.makeQueueTools()
	}
	w.base.Fallback, w.base.Timeouts = n.fallback(), n.CallTimeout.bounds()
	if w.base.Fallback == nil && w.base.Model == "" && w.base.Provider == "" {
		w.base.Fallback = llm.ContextFallback(m.Get().Settings) // one for all turns, which stay on a model
	}
	w.base.Context, w.base.StopAtMax = w.lane, true
	w.steer(m)
	if w.base.Tools, err = withClientTools(m, slices.Concat(w.offeredTools, w.orderedTools)); err != nil {
		return nil, err
	}
	w.demands = demandsOn(ctx, m)
	w.counter = &countingHost{}
	w.limits = callLimits{n: n, host: w.counter}
	if n.MaxTime.Duration > 0 {
		w.limits.stopwatch = ctx.Stopwatch()
	}
	w.setEffectPrefix("")
	return w, nil
}

// loadQueues converts the entries of the settings to tasks.
func (w *agentWorker) loadQueues() error {
	var todo []queuedTask
	for i, q := range []struct {
		entries []queueEntry
		tasks   *[]queuedTask
	}{{w.n.Pre, &w.pre}, {w.n.Todo, &todo}, {w.n.Post, &w.post}} {
		for j := range q.entries {
			t, err := w.newTask(fmt.Sprintf("%s.%d", queueSettingNames()[i], j), &q.entries[j])
			if err != nil {
				return err
			}
			*q.tasks = append(*q.tasks, t)
		}
	}
	if err := w.todo.Add(todo...); err != nil {
		return permanentError(CodeInput, "todo: %v", err)
	}
	return nil
}

// setEffectPrefix sets a prefix for the names of the following effects, which are numbered
// from 1.
func (w *agentWorker) setEffectPrefix(prefix string) {
	name := prefix
	if name == "" {
		name = "queue." // models' calls keep the names that they have without queues
	}
	w.counter.Host = w.ctx.LLMHostAs(prefix)
	w.host = queue.Ordered(w.ctx, w.counter, w.orderedTools...)
	w.directHost, w.directCalls, w.prefix = w.ctx.LLMHostAs(name), 0, prefix
}

// findTools finds the flows, the tools that the model may call and those that entries call,
// with the approval policy of the settings.
func (w *agentWorker) findTools() error {
	in, _ := w.ctx.Input("tools")
	names, err := toolNames(in)
	if err != nil {
		return err
	}
	given := len(names)
	for _, e := range slices.Concat(w.n.Pre, w.n.Todo, w.n.Post) {
		if e.Tool != "" && !slices.Contains(names, e.Tool) {
			names = append(names, e.Tool)
		}
	}
	all, err := toolsNamed(w.ctx.Tools(), names)
	if err == nil {
		all, err = w.n.withApproval(all)
	}
	if err != nil {
		return err
	}
	w.offeredTools, w.tools = all[:given], make(map[string]*tool.Tool, len(all))
	for i, t := range all {
		w.tools[names[i]] = t
		if w.n.offersTools() && i < given && (t.Name == addTool || t.Name == listTool) {
			return withHint(permanentError(CodeInput, "tools: %s is the name of a tool of the agent's queue", t.Name),
				"give the other tool another name, or set queue: {tools: false}")
		}
	}
	return w.findFlows()
}

// runQueued is Run for an agent with queues.
func (n *agentNode) runQueued(ctx *node.Ctx, m *convo.Manager) error {
	w, err := n.newWorker(ctx, m)
	if err != nil {
		return err
	}
	asks := llmRequestNode{ModelSettings: n.ModelSettings, Schema: n.Schema}
	message, err := asks.message(ctx, m)
	if err != nil {
		return err
	}
	if message != nil {
		if _, err := m.AddUserInput(*message); err != nil {
			return err
		}
	}
	before := w.lane.Get().History.Len()
	err = w.runQueues(message)
	if !w.isOver(err) {
		return err // it waits, is cancelled, or no work is left
	}
	if err = w.runPost(err); err == nil || w.isOver(err) {
		ctx.Meta("agent", w.summary())
	}
	if err != nil {
		return err
	}
	if err := w.demands.check(&w.last); err != nil {
		return err
	}
	trace, err := traceOf(w.lane, before)
	if err != nil {
		return err
	}
	ctx.Output("trace", trace)
	if err := addAnswer(m, w.last.Text); err != nil {
		return err
	}
	result := w.last
	result.Steps, result.Usage = w.counter.steps, w.counter.usage
	if wasCutOff(result.Stop) {
		asks.Schema = nil // the last thing said is not the answer that was asked for
	}
	return asks.outputResult(ctx, &result)
}

// isOver reports whether the work has ended with err, successfully or not, so that the
// queue post may be processed. It is false if the attempt waits, is being cancelled, or
// cannot continue its record.
func (w *agentWorker) isOver(err error) bool {
	if err == nil {
		return true
	}
	if w.ctx.Err() != nil || errors.Is(err, node.ErrSuspended) {
		return false
	}
	failed, ok := errors.AsType[*engine.Error](err)
	return ok && failed.Code != engine.CodeNondeterministic && failed.Code != engine.CodeCancelled
}

// runQueues processes the queue pre, then runs the loop.
func (w *agentWorker) runQueues(message *convo.Message) error {
	for i := range w.pre {
		w.report.pre.done++
		if _, err := w.runEntry("pre", &w.pre[i], true); err != nil {
			w.report.pre.failed++
			return entryError("pre", i, &w.pre[i], w.limitError(err))
		}
	}
	if message == nil && len(w.pre) > 0 {
		message = &convo.Message{Role: convo.User, Text: continueText}
	}
	err := w.runLoop(message)
	for err == nil && w.moreSteering(true) {
		_, err = w.answerTurn(nil, true)
	}
	if reached, is := errors.AsType[*limitError](err); is && w.n.AtMax == "stop" {
		w.last.Stop = reached.stop
		return nil
	}
	return w.limitError(err)
}

// runLoop answers the message or makes a plan, processes the queue until it is empty, and
// asks for the final answer if entries were processed besides the message.
func (w *agentWorker) runLoop(message *convo.Message) error {
	steps := w.n.Mode == planMode || w.todo.Len() > 0
	if w.n.Mode == planMode {
		if err := w.plan(message); err != nil {
			return err
		}
	} else {
		if over, err := w.answerTurn(message, !steps); over || err != nil {
			return err
		}
		steps = w.todo.Len() > 0
	}
	for steps {
		if over, err := w.runTodo(); over || err != nil {
			return err
		}
		over, err := w.answerTurn(&convo.Message{Role: convo.User, Text: finalAnswerText}, true)
		if over || err != nil {
			return err
		}
		steps = w.todo.Len() > 0
	}
	return nil
}

// runTodo processes the queue until it is empty, or until the model has called a tool that
// ends the work.
func (w *agentWorker) runTodo() (over bool, err error) {
	for {
		t, ok := w.todo.Next()
		if !ok {
			return false, nil
		}
		w.report.todo.done++
		if over, err = w.runEntry("todo", &t, false); over || err != nil {
			if reached, is := errors.AsType[*limitError](err); is && !reached.turnStarted {
				w.report.todo.done--
				w.notStarted++
			} else if _, failed := errors.AsType[*engine.Error](err); failed {
				w.report.todo.failed++
			}
			return over, err
		}
	}
}

// answerTurn runs a turn of the loop; final says that its answer may be the agent's answer.
func (w *agentWorker) answerTurn(message *convo.Message, final bool) (over bool, err error) {
	var schema map[string]any
	if final {
		if schema = w.n.Schema; w.demands.schema() != nil {
			schema = w.demands.schema()
		}
	}
	r, err := w.runTurn(message, schema)
	if r != nil {
		w.last = *r
	}
	return r != nil && r.Stop == stopByTool, err
}

// runTurn runs a turn in the lane within the limits. If a limit is reached, it returns the
// partial result and the error limitReached.
func (w *agentWorker) runTurn(message *convo.Message, schema map[string]any) (*llm.Result, error) {
	if stop, err := w.limits.reached(); stop != "" || err != nil {
		return nil, firstError(err, &limitError{stop: stop})
	}
	t := w.base
	t.Message, t.Schema, t.EarlierToolCalls = message, schema, w.host.Calls()
	t.MaxSteps, t.CheckLimit = w.limits.stepsLeft(), func(llm.Result) (string, error) { return w.limits.reached() }
	r, err := w.ctx.LLM().Turn(w.ctx, w.host, t)
	if err != nil {
		return nil, node.ModelError(err)
	}
	if r.Stop != stopByTool && wasCutOff(r.Stop) {
		return r, &limitError{r.Stop, true}
	}
	return r, nil
}

func firstError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// stopByTool is the Stop of a turn in which a tool ended the work.
const stopByTool = "calls"

// wasCutOff reports whether a turn ended before the model gave its answer.
func wasCutOff(stop string) bool {
	return slices.Contains([]string{stopByTool, llm.StopSteps, stopTokens, stopTime}, stop)
}
