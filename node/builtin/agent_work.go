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

// worker works off the queues of an agent in one entry into an attempt. All that it
// decides follows from settings, inputs and recorded results, so that every entry
// takes the same way. It belongs to the node's goroutine.
type worker struct {
	n    *agentNode
	ctx  *node.Ctx
	lane *convo.Manager
	base llm.Turn // what all turns have in common

	offered []*tool.Tool // to the model, the queue's own not among them
	tools   map[string]*tool.Tool
	flows   []runnable
	ordered []*tool.Tool // the queue's own

	pre, post []task
	todo      *queue.Queue[task]
	closed    bool // nothing is added any more
	unbegun   int  // entries that were taken out and not begun

	watch  *watchedHost
	host   *queue.Host
	own    llm.Host // for calls of tools that are the agent's own
	calls  int      // how many of those there were
	prefix string   // of the names of effects
	limits limits
	last   llm.Result // the newest turn of the loop
	report report
}

// What the agent says to the model by itself.
const (
	goOnText = "These were preparations. Now answer what was said before them."
	lastText = "That was the last step. Now give the final answer to what was asked at first."
	endText  = "The work above ended with a failure: "
)

// newWorker reads the settings into queues. It fails before anything is spent where
// an entry cannot be worked on.
func (n *agentNode) newWorker(ctx *node.Ctx, m *convo.Manager) (*worker, error) {
	w := &worker{n: n, ctx: ctx, lane: laneOf(ctx, m), todo: queue.New[task](n.Queue.Capacity)}
	if err := w.offers(); err != nil {
		return nil, err
	}
	if err := w.load(); err != nil {
		return nil, err
	}
	var err error
	if w.base, err = n.turn(ctx, m); err != nil {
		return nil, err
	}
	if n.offersTools() {
		w.ordered = w.queueTools()
	}
	w.base.Context, w.base.StopAtMax = w.lane, true
	w.base.Tools = slices.Concat(w.offered, w.ordered)
	w.watch = &watchedHost{}
	w.limits = limits{n: n, host: w.watch}
	if n.MaxTime.Duration > 0 {
		w.limits.watch = ctx.Stopwatch()
	}
	w.hostAs("")
	return w, nil
}

// load makes tasks of the entries that the settings have.
func (w *worker) load() error {
	var todo []task
	for i, q := range []struct {
		entries []entry
		tasks   *[]task
	}{{w.n.Pre, &w.pre}, {w.n.Todo, &todo}, {w.n.Post, &w.post}} {
		for j := range q.entries {
			t, err := w.ready(fmt.Sprintf("%s.%d", queueNames()[i], j), &q.entries[j])
			if err != nil {
				return err
			}
			*q.tasks = append(*q.tasks, t)
		}
	}
	if err := w.todo.Add(todo...); err != nil {
		return failure(CodeInput, "todo: %v", err)
	}
	return nil
}

// hostAs has the effects that follow be named with a prefix, and numbered anew.
func (w *worker) hostAs(prefix string) {
	name := prefix
	if name == "" {
		name = "queue." // models' calls keep the names that they have without queues
	}
	w.watch.Host = w.ctx.LLMHostAs(prefix)
	w.host = queue.Ordered(w.ctx, w.watch, w.ordered...)
	w.own, w.calls, w.prefix = w.ctx.LLMHostAs(name), 0, prefix
}

// offers finds the tools that the model may call and those that entries call, under
// what the settings say of a person's leave, and the flows.
func (w *worker) offers() error {
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
		all, err = w.n.guarded(all)
	}
	if err != nil {
		return err
	}
	w.offered, w.tools = all[:given], make(map[string]*tool.Tool, len(all))
	for i, t := range all {
		w.tools[names[i]] = t
		if w.n.offersTools() && i < given && (t.Name == addTool || t.Name == listTool) {
			return hinted(failure(CodeInput, "tools: %s is the name of a tool of the agent's queue", t.Name),
				"give the other tool another name, or set queue: {tools: false}")
		}
	}
	return w.runnables()
}

// runQueued is Run of an agent with queues.
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
		if _, err := m.Hear(*message); err != nil {
			return err
		}
	}
	before := w.lane.Get().History.Len()
	err = w.work(message)
	if !w.ended(err) {
		return err // it waits, is cancelled, or nothing can be done any more
	}
	if err = w.finish(err); err == nil || w.ended(err) {
		ctx.Meta("agent", w.summary())
	}
	if err != nil {
		return err
	}
	trace, err := traceOf(w.lane, before)
	if err != nil {
		return err
	}
	ctx.Output("trace", trace)
	if err := answerIn(m, w.last.Text); err != nil {
		return err
	}
	result := w.last
	result.Steps, result.Usage = w.watch.steps, w.watch.usage
	if cutOff(result.Stop) {
		asks.Schema = nil // the last thing said is not the answer that was asked for
	}
	return asks.putOut(ctx, &result)
}

// ended reports whether the work is over with err, well or not, so that what comes
// after it may be done: not where the attempt waits or is to end, or its record
// cannot be gone on with.
func (w *worker) ended(err error) bool {
	if err == nil {
		return true
	}
	if w.ctx.Err() != nil || errors.Is(err, node.ErrSuspended) {
		return false
	}
	failed, ok := errors.AsType[*engine.Error](err)
	return ok && failed.Code != engine.CodeNondeterministic && failed.Code != engine.CodeCancelled
}

// work does what is to be done before the loop, and the loop.
func (w *worker) work(message *convo.Message) error {
	for i := range w.pre {
		w.report.pre.run++
		if _, err := w.do("pre", &w.pre[i], true); err != nil {
			w.report.pre.failed++
			return entryError("pre", i, &w.pre[i], w.tooLong(err))
		}
	}
	if message == nil && len(w.pre) > 0 {
		message = &convo.Message{Role: convo.User, Text: goOnText}
	}
	err := w.loop(message)
	if reached, is := errors.AsType[*limitReached](err); is && w.n.AtMax == "stop" {
		w.last.Stop = reached.stop
		return nil
	}
	return w.tooLong(err)
}

// loop answers the message, or makes a plan, works off what is in the queue until
// there is nothing in it, and has the final answer given where that was more than
// the message.
func (w *worker) loop(message *convo.Message) error {
	steps := w.n.Mode == planMode || w.todo.Len() > 0
	if w.n.Mode == planMode {
		if err := w.plan(message); err != nil {
			return err
		}
	} else {
		if over, err := w.answer(message, !steps); over || err != nil {
			return err
		}
		steps = w.todo.Len() > 0
	}
	for steps {
		if over, err := w.consume(); over || err != nil {
			return err
		}
		over, err := w.answer(&convo.Message{Role: convo.User, Text: lastText}, true)
		if over || err != nil {
			return err
		}
		steps = w.todo.Len() > 0
	}
	return nil
}

// consume works off the queue until there is nothing in it, or the model has called
// a tool that ends the work.
func (w *worker) consume() (over bool, err error) {
	for {
		t, ok := w.todo.Next()
		if !ok {
			return false, nil
		}
		w.report.todo.run++
		if over, err = w.do("todo", &t, false); over || err != nil {
			if reached, is := errors.AsType[*limitReached](err); is && !reached.begun {
				w.report.todo.run--
				w.unbegun++
			} else if _, failed := errors.AsType[*engine.Error](err); failed {
				w.report.todo.failed++
			}
			return over, err
		}
	}
}

// answer is a turn of the loop; final says that it may be the agent's answer.
func (w *worker) answer(message *convo.Message, final bool) (over bool, err error) {
	var schema map[string]any
	if final {
		schema = w.n.Schema
	}
	r, err := w.turn(message, schema)
	if r != nil {
		w.last = *r
	}
	return r != nil && r.Stop == stopCalls, err
}

// turn is a turn in the lane, as far as the limits let it come: where one is reached
// there is a result with what was said, and the error limitReached.
func (w *worker) turn(message *convo.Message, schema map[string]any) (*llm.Result, error) {
	if stop, err := w.limits.reached(); stop != "" || err != nil {
		return nil, cmpErr(err, &limitReached{stop: stop})
	}
	t := w.base
	t.Message, t.Schema, t.ToolsBefore = message, schema, w.host.Calls()
	t.MaxSteps, t.Bound = w.limits.left(), func(llm.Result) (string, error) { return w.limits.reached() }
	r, err := w.ctx.LLM().Turn(w.ctx, w.host, t)
	if err != nil {
		return nil, node.ModelError(err)
	}
	if r.Stop != stopCalls && cutOff(r.Stop) {
		return r, &limitReached{r.Stop, true}
	}
	return r, nil
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// stopCalls is the Stop of a turn in which a tool was called that ends the work.
const stopCalls = "calls"

// cutOff reports whether a turn ended without the model having said its answer.
func cutOff(stop string) bool {
	return slices.Contains([]string{stopCalls, llm.StopSteps, stopTokens, stopTime}, stop)
}
