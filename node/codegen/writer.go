package codegen

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// Writer has models write the code of a job, and runs it.
type Writer struct {
	Job
	// Task is what the code must do, in the words of the flow.
	Task string
	// Attempts is the maximum number of programs that are tried, at least 1.
	Attempts int
	// Learn stores successful code and reuses it for the same task.
	Learn bool
	// Turn returns a turn in an empty context with the node's settings for an agent.
	Turn func(agent string) (llm.Turn, error)
	// Tools are the tools of the agent that writes the code, used in at most MaxSteps model
	// calls.
	Tools     []*tool.Tool
	MaxSteps  int
	StopAtMax bool
}

// Agents lists the agents that call a model, each of which may have its own model.
func Agents() []string {
	return []string{stepName(stepInput), stepName(stepData), stepName(stepGenerate), stepName(stepOutput)}
}

// Run turns the task into working code and writes its changes to the state. Usage is that
// of the models. The node's metadata describes the steps, whatever the outcome.
func (w *Writer) Run(ctx *node.Ctx) (r *Execution, usage map[string]any, err error) {
	k := &codeWriting{
		Writer: w, ctx: ctx, state: withoutHandles(ctx.State().All()), inputs: withoutHandles(ctx.Inputs()),
		notes: map[string]any{},
	}
	k.secrets = secretTexts(k.state, k.inputs)
	k.onEffect = func() { k.effectDone = true }
	r, err = k.writeCode()
	if err != nil && endsAttempt(ctx, err) {
		return nil, nil, err
	}
	if err == nil {
		err = applyUpdate(ctx.State(), r)
	}
	ctx.Meta("ai_metadata", k.metadata())
	if err != nil {
		return nil, nil, err
	}
	return r, usageValue(k.usage), nil
}

// codeWriting is one run of a Writer.
type codeWriting struct {
	*Writer
	ctx           *node.Ctx
	state, inputs map[string]any
	secrets       []string
	round         int // number of the current program, from 1; 0 before the first
	code          string
	insights      engine.Value
	rejections    []rejection
	calls         int // number of tool calls so far
	usage         engine.Usage
	cached        bool
	learned       *Learned // what is known about the task at the start
	effectDone    bool     // an effect of the step completed in this entry
	// For the metadata: findings of the agents by name, steps and their duration.
	notes  map[string]any
	steps  int
	micros int64
	model  string
}

// rejection is the reason why code was rejected.
type rejection struct {
	round, step  int
	code, reason string
}

// writeCode produces working code, from learned code or by the agents.
func (k *codeWriting) writeCode() (*Execution, error) {
	if err := k.checkExecutor(); err != nil {
		return nil, err
	}
	if k.Learn {
		r, err := k.tryLearned()
		if r != nil || err != nil {
			return r, err
		}
	}
	if err := k.analyseAll(); err != nil {
		return nil, err
	}
	most := max(k.Attempts, 1) * max(k.ctx.Info().Attempt, 1)
	for range most {
		r, err := k.attempt()
		if err != nil {
			return nil, err
		}
		if r != nil {
			if k.Learn {
				err = k.saveCandidate(r)
			}
			return r, err
		}
	}
	return nil, k.attemptsError(most)
}

// attempt generates code and tries it. Without a result and an error the code was rejected,
// and the faults say why.
func (k *codeWriting) attempt() (*Execution, error) {
	k.round++
	k.code = ""
	if ok, err := k.generate(); !ok || err != nil {
		return nil, err
	}
	if ok, err := k.validate(); !ok || err != nil {
		return nil, err
	}
	return k.try()
}

// try runs the present code and validates its result.
func (k *codeWriting) try() (*Execution, error) {
	r, err := k.run()
	if r == nil || err != nil {
		return nil, err
	}
	ok, err := k.validateOutput(r)
	if !ok || err != nil {
		return nil, err
	}
	return r, nil
}

// reject records why the code was rejected.
func (k *codeWriting) reject(step int, why string) {
	k.rejections = append(k.rejections, rejection{round: k.round, step: step, code: k.code, reason: why})
}

// attemptsError returns the error of a node when all programs were rejected.
func (k *codeWriting) attemptsError(most int) *engine.Error {
	last := k.rejections[len(k.rejections)-1]
	tries := fmt.Sprintf("none of %d attempts came", most)
	if most == 1 {
		tries = "the attempt did not come"
	}
	return &engine.Error{
		Code: engine.CodeGeneration, Permanent: true,
		Message: fmt.Sprintf("%s to code that does what was asked; the last: %s: %s", tries, stepName(last.step), last.reason),
		Hint: fmt.Sprintf("`%s` shows every attempt; make the prompt more specific, increase attempts, or continue with as many more attempts with `%s`",
			engine.CommandLine("show", k.ctx.Info().Run, "--chain"), engine.CommandLine("retry", k.ctx.Info().Run, k.ctx.Info().Path)),
	}
}

// record records and counts a step. A step that failed in an earlier attempt of the node is
// already recorded when it is repeated.
func (k *codeWriting) record(s engine.Step) error {
	again := s.Status == engine.StepFailed && !k.effectDone && k.ctx.Info().Attempt > 1
	k.effectDone = false
	s.Name = stepName(s.Number)
	k.steps++
	k.micros += s.Micros
	if s.Usage != nil {
		k.usage = k.usage.Add(*s.Usage)
	}
	if again {
		return nil
	}
	return k.ctx.Record(s)
}

// metadata returns the node's report about its agents.
func (k *codeWriting) metadata() map[string]any {
	m := k.notes
	m["attempts"] = int64(k.round)
	m["errors"] = k.errorHistory()
	m["total_time_ms"] = k.micros / 1000
	m["steps"] = int64(k.steps)
	m["cache"] = map[string]any{"hit": k.cached}
	m["model"] = k.model
	return m
}

func usageValue(u engine.Usage) map[string]any {
	return map[string]any{
		"input": int64(u.Input), "cached": int64(u.Cached), "output": int64(u.Output),
		"reasoning": int64(u.Reasoning), "calls": int64(u.Calls),
	}
}

// agentAnswer is the answer of an agent's model.
type agentAnswer struct {
	text   string
	object map[string]any // of a structured answer
	calls  []any          // of tools: {name, arguments}
	model  string
	usage  *engine.Usage
	micros int64
}

// addTo adds what is known of a model's answer to its step.
func (a *agentAnswer) addTo(s *engine.Step) {
	s.Model, s.Usage, s.Micros = a.model, a.usage, s.Micros+a.micros
}

// ask asks the model of an agent; names are the fields of a structured answer that hold the
// result. Invalid answers are returned in fault, other failures in err.
func (k *codeWriting) ask(number int, system, message string, schema map[string]any, says ...string) (a agentAnswer, fault string, err error) {
	t, err := k.Turn(stepName(number))
	if err != nil {
		return a, "", err
	}
	if t.System != "" {
		system += "\n\n" + t.System
	}
	t.System, t.Schema, t.SkipHistory, t.EarlierToolCalls = system, schema, true, k.calls
	if schema != nil {
		t.ParseAnswer = readObject(schema, says...)
	}
	t.Message = said(message)
	if number == stepGenerate {
		t.Tools, t.MaxSteps, t.StopAtMax = k.Tools, k.MaxSteps, k.StopAtMax
	}
	h := &agentHost{Host: k.ctx.LLMHost(), onEffect: k.effectStarted}
	r, err := k.ctx.LLM().Turn(k.ctx, h, t)
	a.model, a.micros, a.usage = h.model, h.micros, h.totalUsage()
	if number == stepGenerate || k.model == "" {
		k.model = h.model
	}
	if err != nil {
		if why, ok := answerFault(err); ok {
			return a, why, nil
		}
		return a, "", node.ModelError(err)
	}
	a.text = r.Text
	a.object, _ = r.Value.(map[string]any)
	k.calls += len(r.Calls)
	for _, c := range r.Calls {
		a.calls = append(a.calls, map[string]any{"name": c.Name, "arguments": c.Arguments})
	}
	if r.Stop == "length" {
		return a, "the answer was cut off at the output limit: increase maxOutput", nil
	}
	return a, "", nil
}

// answerFault reports whether an error means that a model's answer was invalid, and why.
func answerFault(err error) (string, bool) {
	code, message := "", ""
	if m, ok := errors.AsType[*llm.Error](err); ok {
		code, message = m.Code, m.Message
	} else if e, ok := errors.AsType[*engine.Error](err); ok {
		code, message = e.Code, e.Message
	}
	return message, code == engine.CodeModelAnswer || code == engine.CodeTurnTooLong
}

// recordFailed records a step that ended with an error, and returns the error.
func (k *codeWriting) recordFailed(s engine.Step, err error) error {
	if endsAttempt(k.ctx, err) {
		return err
	}
	s.Status, s.Error = engine.StepFailed, messageOf(err)
	k.effectDone = true
	if rec := k.record(s); rec != nil {
		return errors.Join(err, rec)
	}
	return err
}

// errorHistory returns the failures of earlier programs, as stored in steps.
func (k *codeWriting) errorHistory() []any {
	list := make([]any, len(k.rejections))
	for i, f := range k.rejections {
		list[i] = map[string]any{"attempt": int64(f.round), "agent": stepName(f.step), "error": f.reason}
	}
	return list
}

// task returns the task without surrounding white space.
func (k *codeWriting) task() string { return strings.TrimSpace(k.Task) }
