package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/guard"
	"github.com/weir-run/weir/tool"
)

// Turn calls the model, runs the tools that it calls and calls it again, until it answers
// without calls, a tool that ends the turn was called, or, with StopAtMax, the limit of
// steps is reached. The message, the answers and the results are then added to t.Context
// together; if the turn fails, only the message is. Errors of models are *Error (also
// model_unknown_provider before any call and turn_too_long); those of the host and of the
// context are returned unchanged.
func (s *Service) Turn(ctx context.Context, h Host, t Turn) (*Result, error) {
	run, err := s.newTurn(h, t)
	if err != nil {
		return nil, err
	}
	return PreparedTurn{run}.Run(ctx)
}

// PreparedTurn is a turn that was checked and not made yet. Run it once.
type PreparedTurn struct{ t *turn }

// PrepareTurn is the first part of Turn, and Run the second. It calls build, which returns the turn, on a goroutine of its own:
// the stack that the preparation needs is free while the model answers.
func (s *Service) PrepareTurn(h Host, build func() (Turn, error)) (p PreparedTurn, err error) {
	err = guard.Call(func() error {
		t, err := build()
		if err != nil {
			return err
		}
		p.t, err = s.newTurn(h, t)
		return err
	})
	return p, err
}

// Run makes the turn; see Service.Turn.
func (p PreparedTurn) Run(ctx context.Context) (*Result, error) {
	run := p.t
	for done := false; !done; {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		stop, err := run.limit()
		if err != nil {
			return nil, err
		}
		if stop != "" {
			run.result.Stop = stop
			break
		}
		if done, err = run.step(); err != nil {
			return nil, err
		}
	}
	if err := run.commit(); err != nil {
		return nil, err
	}
	return &run.result, nil
}

// limit returns the Stop of a turn that has reached a limit, "" if it may continue. Every
// model call counts as a step, including summaries and repairs.
func (t *turn) limit() (stop string, err error) {
	steps, allowed := t.result.Steps, t.MaxSteps
	if allowed <= 0 {
		allowed = DefaultMaxSteps
	}
	allowed += t.steeredSteps
	message := ""
	switch {
	case steps >= allowed:
		stop = StopSteps
		message = fmt.Sprintf("the model still calls tools after %d calls of it; "+
			"increase the limit of steps, or end the turn with a tool that ends it", steps)
	case steps > 0 && t.CheckLimit != nil:
		if stop, err = t.CheckLimit(t.result); err != nil {
			return "", err
		}
		message = fmt.Sprintf("the model still calls tools after %d calls of it, at the limit of %s; increase that limit", steps, stop)
	}
	if stop != "" && !t.StopAtMax {
		return "", &Error{Code: engine.CodeTurnTooLong, Message: message}
	}
	return stop, nil
}

// turn is the state of one turn. It belongs to one goroutine.
type turn struct {
	Turn
	service  *Service
	host     Host
	provider Provider
	// candidates are the models that the turn may ask, and current is the index of the one
	// that it asks; failed is the number of models that failed for the present answer.
	candidates      []candidate
	current, failed int
	// demands are those of the newest request.
	demands Demands
	// steeredSteps is the number of calls that were made only because a person had sent a
	// message.
	steeredSteps int
	// effects counts the calls that were requested from the host.
	effects int
	// ownMarks are the marks of the context before another model was asked, nil if none was.
	ownMarks *convo.Marks
	tools    map[string]*tool.Tool
	req      Request // without messages and key
	// lane is the context with what the turn has added so far. own is where the turn's
	// messages begin: after the message, which is in the context already.
	lane        convo.Context
	ownStart    int
	window      windowBudget
	parseAnswer answerParser // of structured answers, nil for text
	result      Result
}

func (s *Service) newTurn(h Host, t Turn) (*turn, error) {
	if t.Context == nil {
		t.Context, t.SkipHistory = convo.NewManager(convo.Context{}, true), true
	}
	run := &turn{Turn: t, service: s, host: h, tools: make(map[string]*tool.Tool, len(t.Tools))}
	set := t.Context.Get().Settings
	if t.Fallback == nil && t.Model == "" && t.Provider == "" {
		run.Fallback = ContextFallback(set)
	}
	run.req = Request{
		System: cmp.Or(t.System, set.System), Temperature: set.Temperature,
		MaxOutput: cmp.Or(t.MaxOutput, set.MaxOutput), Reasoning: cmp.Or(t.Reasoning, set.Reasoning), Schema: t.Schema, Timeouts: t.Timeouts.over(Timeouts(set.CallTimeout)),
		KeepSession: cmp.Or(t.History, set.History) == HistoryServer && !t.SkipHistory,
	}
	if err := run.resolveCandidates(set); err != nil {
		return nil, err
	}
	if err := run.checkHistory(); err != nil {
		return nil, err
	}
	if t.Temperature != nil {
		run.req.Temperature = t.Temperature
	}
	for _, tl := range t.Tools {
		if run.tools[tl.Name] == nil {
			run.tools[tl.Name] = tl
			run.req.Tools = append(run.req.Tools, Tool{Name: tl.Name, Description: tl.Description, Parameters: tl.Parameters})
		}
	}
	var err error
	if run.parseAnswer, err = answerParserOf(&run.Turn); err != nil {
		return nil, err
	}
	run.measureWindow(set)
	if err := run.addMessage(); err != nil {
		return nil, err
	}
	if run.current > 0 {
		run.keepMarks()
	}
	return run, nil
}

// addMessage adds the message to the context.
func (t *turn) addMessage() error {
	m := t.Context
	if t.SkipHistory {
		m = convo.NewManager(t.Context.Get(), true)
	}
	if t.Message != nil {
		msg := *t.Message
		if msg.Role == "" {
			msg.Role = convo.User
		}
		if _, err := m.AddUserInput(msg); err != nil {
			return err
		}
	}
	t.lane = m.Get()
	t.ownStart = t.lane.History.Len()
	return nil
}

// addToLane adds the turn's messages to its lane.
func (t *turn) addToLane(ms ...convo.Message) (err error) {
	t.lane, err = t.lane.Extend(ms, false)
	return err
}

// step makes one model call and the tool calls that it requests, and reports whether the
// turn is complete.
func (t *turn) step() (done bool, err error) {
	if err := t.takeSteering(); err != nil {
		return false, err
	}
	resp, err := t.callForAnswer()
	if err != nil {
		return false, err
	}
	if done, err = t.applyAnswer(resp); !done || err != nil {
		return done, err
	}
	if t.MoreSteering != nil && t.MoreSteering() {
		t.steeredSteps++
		return false, nil
	}
	if resp.Stop == StopInterrupted && t.parseAnswer != nil {
		return false, errInterruptedForm()
	}
	return true, nil
}

// applyAnswer adds an answer to the lane, makes the tool calls that it requests, and reports
// whether the turn is complete.
func (t *turn) applyAnswer(resp *Response) (done bool, err error) {
	msg := resp.Message
	msg.ID, msg.Role = "", convo.Assistant
	t.result.Value = nil
	text := msg.Text
	if t.parseAnswer != nil && len(msg.Calls) == 0 && resp.Stop != StopInterrupted {
		if t.result.Value, text, err = t.parseAnswer(msg.Text); err != nil {
			return false, err
		}
		if t.CanonicalAnswer {
			msg.Text = text
		}
	}
	if resp.Stop != StopInterrupted || msg.Text != "" {
		if err := t.addToLane(msg); err != nil {
			return false, err
		}
	}
	t.recordSession(resp)
	t.result.Text, t.result.Reasoning, t.result.Stop = text, msg.Reasoning, resp.Stop
	if len(msg.Calls) == 0 {
		return true, nil
	}
	results, err := t.callTools(msg.Calls)
	if err != nil {
		return false, err
	}
	if err := t.addToLane(results...); err != nil {
		return false, err
	}
	for _, c := range msg.Calls {
		if tl := t.tools[c.Name]; tl != nil && tl.EndsTurn {
			done = true
		}
	}
	return done, nil
}

// callModel makes a model call with the lane, and asks the next model if that fails.
func (t *turn) callModel() (*Response, error) {
	for t.failed = 0; ; {
		effects := t.effects
		resp, err := t.callCurrentModel()
		if resp != nil || !t.fallBack(err) {
			return resp, err
		}
		if t.effects > effects { // else nothing was sent
			t.failed++
		}
	}
}

// callCurrentModel makes a model call with the lane.
func (t *turn) callCurrentModel() (*Response, error) {
	for shrink := 0; ; shrink++ {
		req, err := t.requestApart(shrink)
		if err != nil {
			return nil, err
		}
		resp, err := t.call(req)
		if resp != nil {
			t.learnFactor(req, resp)
			return resp, err
		}
		var failed *Error
		if !errors.As(err, &failed) && !t.hasCode(err, engine.CodeModelSessionLost, engine.CodeModelContextLength) {
			return nil, err
		}
		switch {
		case t.hasCode(err, engine.CodeModelSessionLost) && req.Session != "":
			t.lane.Session = ""
			shrink--
		case t.hasCode(err, engine.CodeModelContextLength) && shrink < maxShrink && len(req.Messages) > 1:
		default:
			return nil, err
		}
	}
}

// maxShrink is the number of times that a view is made smaller because the provider counts
// more than was estimated.
const maxShrink = 2

// call makes one model call as an effect and adds its usage. A rejected answer is returned
// together with its error.
func (t *turn) call(req *Request) (*Response, error) {
	t.effects++
	if t.Fallback != nil {
		req.Failed, req.fallsBackOn = t.failed, t.fallsBackOn
	}
	t.demands = demandsOf(req)
	resp, err := t.host.ModelCall(req, func(ctx context.Context, key string) (*Response, error) {
		if err := t.checkDemands(req); err != nil {
			return nil, err
		}
		var said partialAnswer
		resp, err := t.service.guardedCall(ctx, t.host.Run(), t.provider, req, key, said.emitTo(t.host.Emit), t.usageOf)
		if err != nil && errors.Is(context.Cause(ctx), ErrInterrupted) {
			return said.response(resp), nil
		}
		if err != nil {
			return resp, err
		}
		return resp, t.rejectionError(resp)
	})
	if resp == nil {
		return nil, err
	}
	t.result.Usage = t.result.Usage.Add(resp.RetryCost.Usage).Add(resp.Usage)
	if err != nil && !resp.HasAnswer() {
		return nil, err
	}
	t.result.Steps++
	return resp, err
}

// hasCode reports whether a failed call, live or recorded, has one of the codes.
func (t *turn) hasCode(err error, codes ...string) bool {
	return slices.Contains(codes, codeOf(err))
}

// codeOf returns the code of a failed call, live or recorded, "" for other errors.
func codeOf(err error) string {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Code
	}
	if recorded, ok := errors.AsType[*engine.Error](err); ok {
		return recorded.Code
	}
	return ""
}

// callTools runs the calls of one answer concurrently, except for tools that are InOrder,
// and returns their results in the order of the calls. All have ended when it returns.
func (t *turn) callTools(calls []convo.Call) ([]convo.Message, error) {
	first := t.EarlierToolCalls + len(t.result.Calls) + 1
	t.result.Calls = append(t.result.Calls, calls...)
	out := make([]convo.Message, len(calls))
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	var last *orderedCall // of the ordered calls
	for i, c := range calls {
		out[i] = convo.Message{Role: convo.Tool, CallID: c.ID, Name: c.Name}
		tl := t.tools[c.Name]
		if c.Name == ReaderTool && tl == nil && t.window.reader {
			out[i].Text, out[i].Failed = t.readResult(c.Arguments)
			continue
		}
		if problem := refuse(tl, c); problem != "" {
			out[i].Text, out[i].Failed = problem, true
			continue
		}
		call := func() error {
			r, err := t.host.ToolCall(first+i, tl, c)
			out[i].Text, out[i].Failed, out[i].Metadata = r.Text, r.Failed, r.Metadata
			return err
		}
		if tl.InOrder {
			call, last = last.followedBy(call)
		}
		wg.Go(func() { errs[i] = guard.Call(call) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, err
		}
		if out[i], err = out[i].Normalized(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// orderedCall is a call that others must follow.
type orderedCall struct {
	ended chan struct{}
	err   error // of the call, after it has ended
}

// followedBy makes a call after the previous one has ended. If that one is suspended, this
// one is too.
func (before *orderedCall) followedBy(call func() error) (func() error, *orderedCall) {
	own := &orderedCall{ended: make(chan struct{})}
	return func() error {
		defer close(own.ended)
		if before != nil {
			<-before.ended
			own.err = before.err
		}
		if own.err == nil {
			own.err = call()
		}
		return own.err
	}, own
}

// refuse returns the reason for the model why a call cannot be made, "" if it can.
func refuse(tl *tool.Tool, c convo.Call) string {
	if tl == nil {
		return fmt.Sprintf("There is no tool named %q.", c.Name)
	}
	if c.Arguments != "" && !json.Valid([]byte(c.Arguments)) {
		return "The arguments are not valid JSON."
	}
	return ""
}

// commit adds the turn's messages to the context.
func (t *turn) commit() error {
	if t.SkipHistory {
		return nil
	}
	for i := t.ownStart; i < t.lane.History.Len(); i++ {
		m, err := t.lane.History.Read(i)
		if err != nil {
			return err
		}
		if _, err := t.Context.Add(m); err != nil {
			return err
		}
	}
	marks := t.lane.Marks
	if t.ownMarks != nil {
		marks = *t.ownMarks
	}
	if err := t.Context.SetMarks(marks); err != nil {
		return err
	}
	return t.Context.SetSession(t.lane.Session)
}

// Add returns the sum of both.
func (u Usage) Add(o Usage) Usage {
	return Usage{
		u.Input + o.Input, u.Cached + o.Cached, u.Written + o.Written,
		u.Output + o.Output, u.Reasoning + o.Reasoning, u.CostMicros + o.CostMicros, u.Estimated || o.Estimated,
	}
}

// complete converts an answer to the form in which a journal would return it, and sets what
// a provider may omit: the role, ids of calls (by their index) and the stop reason. A
// duplicate id in one answer is replaced; a conversation at the vendor, which has the calls
// under the original id, is then dropped. Native blocks that some parsers cannot read are
// dropped.
func (r *Response) complete(place int) error {
	m := r.Message
	m.Role = convo.Assistant
	if m.Native != nil && !UnambiguousJSON(m.Native) {
		m.Native, m.Provider = nil, ""
	}
	m, err := m.Normalized()
	if err != nil {
		return &Error{Code: engine.CodeModelUnavailable, Message: "the provider's answer cannot be stored: " + err.Error(), Err: err}
	}
	ids := make(map[string]bool, len(m.Calls))
	for i := range m.Calls {
		c := &m.Calls[i]
		if ids[c.ID] {
			r.Session = ""
		}
		for again := 0; c.ID == "" || ids[c.ID]; again++ {
			c.ID = fmt.Sprintf("call_%d_%d", place, i+1)
			if again > 0 { // a model has used that id, too
				c.ID = fmt.Sprintf("call_%d_%d_%d", place, i+1, again)
			}
		}
		ids[c.ID] = true
	}
	r.Message = m
	if r.Stop == "" {
		r.Stop = "end"
		if len(m.Calls) > 0 {
			r.Stop = "calls"
		}
	}
	return nil
}
