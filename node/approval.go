package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/tool"
)

// approvalGate holds tool calls until a person has approved them. Its decisions depend only
// on the answers of the model and of people, not on the order in which parallel calls
// arrive, so a re-entered attempt decides the same.
type approvalGate struct {
	c      *Ctx
	prefix string // prefix of the effect names of the calls

	mu sync.Mutex // parallel calls share the fields below
	// calls are those of the model's newest answer; the decisions about them are keyed by
	// their index in the attempt.
	calls     []convo.Call
	decisions map[int]callDecision
	// earlierAnswers are people's answers about calls of earlier model answers, newAnswers
	// those about calls of the newest.
	earlierAnswers, newAnswers []tool.ApprovalAnswer
}

// callDecision is the decision about a call, which is allowed if refusal and err are zero.
type callDecision struct {
	refusal string         // the result that the model gets instead
	note    convo.Metadata // who approved or refused, for the record
	err     error          // ErrSuspended: the call waits
}

// setCalls sets the calls of the model's newest answer.
func (g *approvalGate) setCalls(calls []convo.Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls, g.decisions = calls, make(map[int]callDecision)
	g.earlierAnswers, g.newAnswers = append(g.earlierAnswers, g.newAnswers...), nil
}

// check decides whether a call may be made, or a person has to answer first.
func (g *approvalGate) check(index int, t *tool.Tool, call convo.Call, own bool) callDecision {
	if t.Approve == "" || t.Approve == tool.ApproveNever {
		return callDecision{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, done := g.decisions[index]; !done {
		first, calls := index, []convo.Call{call}
		if i := slices.Index(g.calls, call); i >= 0 && !slices.Contains(g.calls[i+1:], call) {
			first, calls = index-i, g.calls
		}
		g.decide(first, calls, index-first, t, own)
	}
	return g.decisions[index]
}

// decide decides about the call at an index of one answer, whose first call has the given
// index, and about all other calls of its tool. With ApproveOnce one question is open at a
// time, because its answer may apply to the following calls.
func (g *approvalGate) decide(first int, calls []convo.Call, place int, t *tool.Tool, own bool) {
	if g.decisions == nil {
		g.decisions = make(map[int]callDecision)
	}
	earlier, waits := slices.Clip(g.earlierAnswers), false
	for i, call := range calls {
		made := call.Name == t.Name && (call.Arguments == "" || json.Valid([]byte(call.Arguments)))
		if i != place && !made {
			continue // a call of another tool, or an invalid call
		}
		if waits && t.Approve == tool.ApproveOnce {
			g.decisions[first+i] = callDecision{err: ErrSuspended}
			continue
		}
		d, answers := g.ask(first+i, t, call, earlier, own)
		g.decisions[first+i] = d
		waits = waits || d.err != nil
		earlier, g.newAnswers = append(earlier, answers...), append(g.newAnswers, answers...)
	}
}

// ask decides about one call, from earlier answers or from a person's answer to its own
// question, which it returns.
func (g *approvalGate) ask(index int, t *tool.Tool, call convo.Call, earlier []tool.ApprovalAnswer, own bool) (callDecision, []tool.ApprovalAnswer) {
	asked := tool.Call{Key: fmt.Sprintf("%s/%stool#%d", g.c.info.Path, g.prefix, index), Arguments: call.Arguments}
	verdict, by := t.Verdict(asked, earlier)
	var answers []tool.ApprovalAnswer
	if verdict == tool.NeedsAnswer {
		who := "The model"
		if own {
			who = "The node " + g.c.info.Path
		}
		a, err := g.c.Ask(g.prefix+questionName(index, t, call), approvalInterrupt(t, asked, who))
		if err != nil {
			return callDecision{err: err}, nil
		}
		allow, reason := ReadApproval(a.Value)
		answers = []tool.ApprovalAnswer{t.ApprovalAnswer(asked, allow && a.Given, a.By, reason)}
		verdict, by = t.Verdict(asked, answers)
	}
	if verdict == tool.Allowed {
		return callDecision{note: approvalMetadata(by)}, answers
	}
	return callDecision{refusal: by.DenialText(), note: approvalMetadata(by)}, answers
}

// approvalMetadata returns the part of an answer that is stored with the result of the call.
func approvalMetadata(a tool.ApprovalAnswer) convo.Metadata {
	note := map[string]any{"allowed": a.Allow}
	if a.By != "" {
		note["by"] = a.By
	}
	if a.Reason != "" {
		note["reason"] = a.Reason
	}
	return convo.Metadata{"approval": note}
}

// questionName names the question about a call by the call's position and content, so that
// an answer never applies to another call.
func questionName(index int, t *tool.Tool, call convo.Call) string {
	sum := sha256.Sum256([]byte(t.Hash() + "\n" + call.Arguments))
	return fmt.Sprintf("approve.%d.%s", index, hex.EncodeToString(sum[:4]))
}

// The answers to a question about a call, besides {"approve": ..., "reason": ...}.
const (
	answerApprove = "approve"
	answerReject  = "reject"
)

// approvalInterrupt returns the interrupt with the question about a call. With ApproveOnce
// its Event names the tool in its present definition, so that an approval applies to the
// run.
func approvalInterrupt(t *tool.Tool, asked tool.Call, who string) engine.Interrupt {
	q := t.ApprovalRequest(asked)
	arguments := q.Arguments
	if arguments == "" {
		arguments = "no arguments"
	}
	i := engine.Interrupt{Kind: engine.AwaitApproval, Prompt: fmt.Sprintf("%s asks to call %s with %s.", who, q.Tool, arguments)}
	if t.Approve == tool.ApproveOnce {
		i.Event = "tool:" + q.Hash
		i.Prompt += fmt.Sprintf(" The approval applies to all further calls of %s in this run.", q.Tool)
	}
	i.Prompt += fmt.Sprintf(" Answer %s, %s, or {\"approve\": false, \"reason\": \"...\"}.", answerApprove, answerReject)
	i.Schema = ApprovalSchema()
	return i
}

// ApprovalSchema returns the JSON Schema of the answers to a request for approval.
func ApprovalSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "string", "enum": []any{answerApprove, answerReject}},
		map[string]any{
			"type": "object", "required": []any{"approve"}, "additionalProperties": false,
			"properties": map[string]any{
				"approve": map[string]any{"type": "boolean"},
				"reason":  map[string]any{"type": "string"},
			},
		},
	}}
}

// ReadApproval reads an answer to a request for approval. Everything except a clear approval
// is a refusal.
func ReadApproval(v engine.Value) (allow bool, reason string) {
	if o, ok := v.(map[string]any); ok {
		reason, _ = o["reason"].(string)
	}
	return engine.IsApproved(v), reason
}
