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

// gate is where calls of tools wait for the leave of a person. What it decides
// follows from the answers of the model and of people alone, and not from the
// order in which parallel calls arrive: an attempt that is entered again decides
// the same.
type gate struct {
	c      *Ctx
	prefix string // of the names of the effects that the calls are

	mu sync.Mutex // parallel calls share what follows
	// calls are those of the model's newest answer, said what was decided about
	// them, by their index in the attempt.
	calls []convo.Call
	said  map[int]decision
	// earlier are people's answers about calls of the model's answers before,
	// fresh those about its newest.
	earlier, fresh []tool.Answer
}

// decision is what becomes of a call: it is made where refusal and err are zero.
type decision struct {
	refusal string         // what the model is told in its place
	note    convo.Metadata // whose leave it was, for the record
	err     error          // ErrSuspended: it waits
}

// answered is told of the model's newest answer.
func (g *gate) answered(calls []convo.Call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls, g.said = calls, make(map[int]decision)
	g.earlier, g.fresh = append(g.earlier, g.fresh...), nil
}

// pass decides about a call: whether it may be made, or a person has to answer
// first.
func (g *gate) pass(index int, t *tool.Tool, call convo.Call, own bool) decision {
	if t.Approve == "" || t.Approve == tool.ApproveNever {
		return decision{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, done := g.said[index]; !done {
		first, calls := index, []convo.Call{call}
		if i := slices.Index(g.calls, call); i >= 0 && !slices.Contains(g.calls[i+1:], call) {
			first, calls = index-i, g.calls
		}
		g.decide(first, calls, index-first, t, own)
	}
	return g.said[index]
}

// decide decides about the call at a place among those of one answer, whose
// first has the given index, and about all others of its tool. With ApproveOnce
// one question is open at a time: its answer may be one to those that follow.
func (g *gate) decide(first int, calls []convo.Call, place int, t *tool.Tool, own bool) {
	if g.said == nil {
		g.said = make(map[int]decision)
	}
	earlier, waits := slices.Clip(g.earlier), false
	for i, call := range calls {
		made := call.Name == t.Name && (call.Arguments == "" || json.Valid([]byte(call.Arguments)))
		if i != place && !made {
			continue // another tool's, or one that the model is told is wrong
		}
		if waits && t.Approve == tool.ApproveOnce {
			g.said[first+i] = decision{err: ErrSuspended}
			continue
		}
		d, answers := g.ask(first+i, t, call, earlier, own)
		g.said[first+i] = d
		waits = waits || d.err != nil
		earlier, g.fresh = append(earlier, answers...), append(g.fresh, answers...)
	}
}

// ask decides about one call, by earlier answers or a person's to a question of
// its own, which it returns.
func (g *gate) ask(index int, t *tool.Tool, call convo.Call, earlier []tool.Answer, own bool) (decision, []tool.Answer) {
	asked := tool.Call{Key: fmt.Sprintf("%s/%stool#%d", g.c.info.Path, g.prefix, index), Arguments: call.Arguments}
	verdict, by := t.Verdict(asked, earlier)
	var answers []tool.Answer
	if verdict == tool.Ask {
		who := "The model"
		if own {
			who = "The node " + g.c.info.Path
		}
		a, err := g.c.Ask(g.prefix+questionName(index, t, call), questionOf(t, asked, who))
		if err != nil {
			return decision{err: err}, nil
		}
		allow, reason := readLeave(a.Value)
		answers = []tool.Answer{t.Answer(asked, allow && a.Given, a.By, reason)}
		verdict, by = t.Verdict(asked, answers)
	}
	if verdict == tool.Allowed {
		return decision{note: noteOf(by)}, answers
	}
	return decision{refusal: by.Refusal(), note: noteOf(by)}, answers
}

// noteOf is what is kept of an answer with the result of the call it is about.
func noteOf(a tool.Answer) convo.Metadata {
	note := map[string]any{"allowed": a.Allow}
	if a.By != "" {
		note["by"] = a.By
	}
	if a.Reason != "" {
		note["reason"] = a.Reason
	}
	return convo.Metadata{"approval": note}
}

// questionName names the question about a call: by the call's place, and by
// what is asked, so that no answer is ever taken for one to something else.
func questionName(index int, t *tool.Tool, call convo.Call) string {
	sum := sha256.Sum256([]byte(t.Hash() + "\n" + call.Arguments))
	return fmt.Sprintf("approve.%d.%s", index, hex.EncodeToString(sum[:4]))
}

// The answers to a question about a call, beside {"approve": ..., "reason": ...}.
const (
	leaveGiven   = "approve"
	leaveRefused = "reject"
)

// questionOf is the interrupt that puts the question about a call. With
// ApproveOnce it names the tool as it is defined now, so that leave holds for
// the run.
func questionOf(t *tool.Tool, asked tool.Call, who string) engine.Interrupt {
	q := t.Question(asked)
	arguments := q.Arguments
	if arguments == "" {
		arguments = "no arguments"
	}
	i := engine.Interrupt{Kind: engine.AwaitApproval, Prompt: fmt.Sprintf("%s asks to call %s with %s.", who, q.Tool, arguments)}
	if t.Approve == tool.ApproveOnce {
		i.Event = "tool:" + q.Hash
		i.Prompt += fmt.Sprintf(" Leave holds for all further calls of %s in this run.", q.Tool)
	}
	i.Prompt += fmt.Sprintf(" Answer %s, %s, or {\"approve\": false, \"reason\": \"...\"}.", leaveGiven, leaveRefused)
	i.Schema = map[string]any{"anyOf": []any{
		map[string]any{"type": "string", "enum": []any{leaveGiven, leaveRefused}},
		map[string]any{
			"type": "object", "required": []any{"approve"}, "additionalProperties": false,
			"properties": map[string]any{
				"approve": map[string]any{"type": "boolean"},
				"reason":  map[string]any{"type": "string"},
			},
		},
	}}
	return i
}

// readLeave reads an answer. What does not say plainly that the call may be
// made refuses it.
func readLeave(v engine.Value) (allow bool, reason string) {
	if o, ok := v.(map[string]any); ok {
		reason, _ = o["reason"].(string)
	}
	return engine.GivesLeave(v), reason
}
