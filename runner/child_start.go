package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// MaxDepth is the default limit of the number of ancestors of a run.
const MaxDepth = 8

// The isolation modes of a child run; "" is fresh.
const (
	isolationFork  = "fork"
	isolationShare = "share"
)

// Child implements node.Children. A child that completed for an earlier attempt is not run again; one that failed or
// was cancelled is started again under another id, unless Keep is set for a failed one.
func (a *attempt) Child(name string, c node.Child) (node.ChildResult, error) {
	if c.Isolation == "" {
		c.Isolation = a.Plan.Def.Isolation
	}
	a.mu.Lock()
	ordinal := a.ordinal(":" + name)
	a.mu.Unlock()
	id := ""
	for attempt := 1; attempt <= a.Attempt; attempt++ {
		id = childInterruptID(a.Path, name, ordinal, attempt)
		if a.awaitsAgain(id) {
			break
		}
		ended := a.childReport(id)
		kept := ended != nil && (ended.Status == engine.Completed || c.KeepFailed && ended.Status == engine.Failed)
		if ended == nil || !kept && attempt < a.Attempt {
			continue
		}
		return a.childResult(c, ended)
	}
	start, err := a.childStart(id, c)
	if err != nil {
		return node.ChildResult{}, err
	}
	_, err = a.wait(engine.Interrupt{ID: id, Kind: engine.AwaitChild, Child: start, Due: a.deadline()})
	return node.ChildResult{}, err
}

func depthError(flow string, depth, most int) error {
	return &engine.Error{
		Code: engine.CodeDepth, Permanent: true,
		Message: fmt.Sprintf("the flow %s would be run %d runs below the first, and %d is the limit", flow, depth, most),
		Hint:    "have flows that use each other end somewhere, or raise the limit where Weir is opened",
	}
}

// deadline returns the time by which a child must have ended, in Unix milliseconds, 0 for none: the timeout of the node
// includes its wait.
func (a *attempt) deadline() int64 {
	if total := a.Plan.Def.Timeout.Total; total > 0 {
		return a.Started + max(total.Milliseconds(), 1)
	}
	return 0
}

// childInterruptID returns the id of the interrupt with which a node waits for a child run. Each attempt has its own.
func childInterruptID(path, name string, ordinal, attempt int) string {
	id := path + ":" + name + "#" + strconv.Itoa(ordinal)
	if attempt > 1 {
		id += "." + strconv.Itoa(attempt)
	}
	return id
}

// childRunID returns the id of the child run for an interrupt of its parent: the tree's id, and a digest of the
// child's position in the tree.
func childRunID(parent, interrupt string) string {
	tree := treeID(parent)
	sum := sha256.Sum256([]byte(parent + "\n" + interrupt))
	return tree + "." + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:12])
}

// awaitsAgain reports whether a child has continued after its failure, so that the node waits for it again.
func (a *attempt) awaitsAgain(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	ans := a.answers[id]
	return ans != nil && ans.Child != nil && !ans.Given
}

func (a *attempt) childReport(id string) *engine.ChildReported {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ans := a.answers[id]; ans != nil && ans.Given {
		return ans.Child
	}
	return nil
}

// childStart returns the start of a child run. It returns the errors that prevent the start, before anything of the
// child is stored.
func (a *attempt) childStart(id string, c node.Child) (*engine.ChildStart, error) {
	f, model, err := a.childFlow(c)
	if err != nil {
		return nil, err
	}
	most := a.m.services.maxDepth
	if most <= 0 {
		most = MaxDepth
	}
	if depth := a.m.run.Start.Depth + 1; depth > most {
		return nil, depthError(f.Name, depth, most)
	}
	inputs, err := node.CheckInputs(f.Inputs, c.Inputs)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeInput, Permanent: true, Message: fmt.Sprintf("flow %s: %v", f.Name, err)}
	}
	state, err := normalValues(c.State)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeInput, Permanent: true, Message: "state " + err.Error()}
	}
	main, err := a.childMain(f, c.Isolation, model)
	if err != nil {
		return nil, err
	}
	return &engine.ChildStart{
		Run: childRunID(a.m.run.ID, id), Fingerprint: f.Fingerprint(),
		Inputs: inputs, State: state, Isolation: c.Isolation, Main: main,
	}, nil
}

// childFlow returns the flow of a child run, and the model that replaces the flow's.
func (a *attempt) childFlow(c node.Child) (f *flow.Flow, model string, err error) {
	if c.Tool == "" {
		if f = a.m.program.Flow.UsedFlow(c.Flow); f == nil {
			return nil, "", &engine.Error{
				Code: engine.CodeChildFlow, Permanent: true,
				Message: fmt.Sprintf("the flow %q is none that this flow uses", c.Flow),
				Hint:    "the setting `flow` of a node names it, and loading the flow finds it",
			}
		}
		return f, "", nil
	}
	use := node.Use{Kind: node.UseTool, Name: c.Tool}
	if !a.grants().Allows(use) {
		return nil, "", NotGranted(use)
	}
	if a.m.services.toolFlow == nil {
		return nil, "", &engine.Error{Code: engine.CodeChildFlow, Permanent: true, Message: "this process offers no flow as the tool " + c.Tool}
	}
	p, model, err := a.m.services.toolFlow(a.ctx, c.Tool)
	if err != nil {
		return nil, "", &engine.Error{Code: engine.CodeChildFlow, Permanent: true, Message: fmt.Sprintf("the flow of the tool %s: %v", c.Tool, err)}
	}
	return p.Flow, model, nil
}

func normalValues(vs engine.Values) (engine.Values, error) {
	out := make(engine.Values, 0, len(vs))
	for _, v := range vs {
		n, err := engine.Normalize(v.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		out = append(out, engine.Named{Name: v.Name, Value: n})
	}
	return out, nil
}

// childMain creates the child's main context. A flow that names no model uses the node's; model, if set, replaces both.
func (a *attempt) childMain(f *flow.Flow, isolation, model string) (engine.ContextChange, error) {
	s := SettingsFor(f, model)
	body := &convo.Change{Create: true, Kind: convo.Main, Settings: &s}
	main := engine.ContextChange{ID: engine.MainContext, Create: true, Body: body}
	if len(a.contexts) == 0 {
		if isolation == isolationFork || isolation == isolationShare {
			return main, &engine.Error{
				Code: engine.CodeContext, Permanent: true,
				Message: fmt.Sprintf("isolation: %s needs a context to begin with, and node type %s uses none", isolation, a.Plan.Def.Type),
			}
		}
		if a.mainSettings != nil {
			inheritModelSettings(&s, *a.mainSettings)
		}
		return main, nil
	}
	own := a.contexts[0]
	inheritModelSettings(&s, own.Settings)
	if isolation != isolationFork && isolation != isolationShare {
		return main, nil
	}
	inheritOtherSettings(&s, own.Settings)
	if main.At = own.History.Len(); main.At > 0 {
		main.Run, main.Parent = a.m.run.ID, own.ID
		marks := own.Marks
		body.Epoch, body.Marks, body.Versions = own.Epoch, &marks, own.History.Versions()
	}
	return main, nil
}

// inheritModelSettings copies the surrounding model to settings without one.
func inheritModelSettings(s *convo.Settings, around convo.Settings) {
	if s.Model == "" {
		s.Provider, s.Model, s.Fallback = around.Provider, around.Model, around.Fallback
	}
}

// inheritOtherSettings copies the settings that a flow that continues a conversation does not set.
func inheritOtherSettings(s *convo.Settings, around convo.Settings) {
	if s.System == "" {
		s.System = around.System
	}
	if s.Temperature == nil {
		s.Temperature = around.Temperature
	}
	if s.MaxOutput == 0 {
		s.MaxOutput = around.MaxOutput
	}
	if s.Reasoning == "" {
		s.Reasoning = around.Reasoning
	}
	if s.Window == 0 {
		s.Window = around.Window
	}
	if s.Reserve == 0 {
		s.Reserve = around.Reserve
	}
	if s.View == (convo.ViewSettings{}) {
		s.View = around.View
	}
	if s.CallTimeout == (convo.CallTimeout{}) {
		s.CallTimeout = around.CallTimeout
	}
}

// SettingsOf returns the initial settings of a flow's main context.
func SettingsOf(f *flow.Flow) convo.Settings {
	c := f.Context
	s := convo.Settings{
		System: c.System, Temperature: c.Temperature, MaxOutput: c.MaxOutput,
		Reasoning: c.Reasoning, Window: c.Budget.Window, Reserve: c.Budget.Reserve, History: c.History,
		View: convo.ViewSettings{
			Strategy: convo.Strategy(c.View.Strategy), Low: c.View.Low, KeepResults: c.View.KeepResults,
			MaxResult: c.View.MaxResult, Summary: c.View.Summary, Model: c.View.Model,
		},
	}
	s.Provider, s.Model = SplitModel(c.Model)
	if len(c.Models) > 1 {
		s.Fallback = &convo.Fallback{Models: c.Models[1:], On: c.On}
	}
	s.CallTimeout = convo.CallTimeout(c.CallTimeout)
	return s
}

// SplitModel reads "provider/model"; without a provider it is the model alone.
func SplitModel(s string) (provider, model string) {
	if i := strings.IndexByte(s, '/'); i > 0 {
		return s[:i], s[i+1:]
	}
	return "", s
}

// childResult converts the end of a child run; its failure becomes one of this node.
func (a *attempt) childResult(c node.Child, e *engine.ChildReported) (node.ChildResult, error) {
	run := e.Run
	r := node.ChildResult{Run: run, Status: e.Status, Outputs: e.Outputs, Answer: e.Answer, Usage: e.Usage}
	switch {
	case e.Error != nil:
		failure := *e.Error
		failure.Below, failure.Run = failure.Place(), cmp.Or(failure.Run, run)
		failure.Node, failure.Attempt, failure.Key = "", 0, ""
		if own, ours := strings.CutPrefix(failure.Budget, a.m.run.ID+"|"); ours {
			failure.Budget = own
		} else if failure.Budget != "" && !strings.Contains(failure.Budget, "|") {
			failure.Budget = run + "|" + failure.Budget
		}
		r.Error = &failure
	case e.Status == engine.Cancelled:
		r.Error = &engine.Error{
			Code: engine.CodeChildCancelled, Permanent: true,
			Message: fmt.Sprintf("child run %s was cancelled", run),
			Hint:    "`" + engine.CommandLine("show", run) + "` says by whom",
		}
	case c.Isolation == isolationShare:
		return r, a.appendSharedMessages(run, e)
	}
	return r, nil
}

// appendSharedMessages appends the messages that the child added to its main context to the node's.
func (a *attempt) appendSharedMessages(run string, e *engine.ChildReported) error {
	own, err := a.Own()
	if err != nil {
		return err
	}
	if e.Length <= e.Began {
		return nil
	}
	ms, err := a.m.services.history(run).Load(engine.MainContext, e.Began, e.Length)
	if err != nil {
		return fmt.Errorf("read the report of child run %s: %w", run, err)
	}
	for _, m := range ms {
		if !strings.HasPrefix(m.ID, run+"/") { // of a child whose message ids are not unique in the tree
			m.ID = run + "/" + m.ID
		}
		if _, err := own.Upsert(m); err != nil {
			return err
		}
	}
	return nil
}

// renamedSource reads one context of another run under any name.
type renamedSource struct {
	src  convo.Source
	name string
}

// Load implements convo.Source.
func (r *renamedSource) Load(_ string, from, to int) ([]convo.Message, error) {
	return r.src.Load(r.name, from, to)
}

// FindMessage implements convo.Finder.
func (r *renamedSource) FindMessage(_, message string, n int) (int, error) {
	if f, ok := r.src.(convo.Finder); ok {
		return f.FindMessage(r.name, message, n)
	}
	for i := n - 1; i >= 0; i-- {
		ms, err := r.Load("", i, i+1)
		if err != nil {
			return -1, err
		}
		if ms[0].ID == message {
			return i, nil
		}
	}
	return -1, nil
}
