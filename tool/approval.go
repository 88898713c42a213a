package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Approval says when a person is asked before a tool is called.
type Approval string

// The policies; "" is ApproveNever.
const (
	// ApproveNever asks nobody.
	ApproveNever Approval = "never"
	// ApproveOnce asks until one call of the tool, as it is defined now, has
	// been allowed in the run; later calls then need no answer, whatever their
	// arguments.
	ApproveOnce Approval = "once"
	// ApproveAlways asks before every call.
	ApproveAlways Approval = "always"
)

func (a Approval) check() error {
	switch a {
	case "", ApproveNever, ApproveOnce, ApproveAlways:
		return nil
	}
	return fmt.Errorf("approve is %q; expected %s, %s or %s", a, ApproveAlways, ApproveOnce, ApproveNever)
}

// ApprovalRequest is what a person is asked about one call.
type ApprovalRequest struct {
	Key         string `json:"key"` // the call's idempotency key
	Tool        string `json:"tool"`
	Hash        string `json:"hash"` // of the tool's definition
	Description string `json:"description,omitempty"`
	Arguments   string `json:"arguments"` // as the model wrote them, made safe to show
}

// ApprovalAnswer is what a person said about one call, as a run's record keeps it.
type ApprovalAnswer struct {
	Key       string `json:"key"`
	Tool      string `json:"tool"`
	Hash      string `json:"hash"`
	Arguments string `json:"arguments"` // SHA-256 in hex of what was asked about
	Allow     bool   `json:"allow"`
	Reason    string `json:"reason,omitempty"`
	By        string `json:"by,omitempty"`
}

// Verdict is what earlier answers say about a call.
type Verdict int

// The verdicts.
const (
	// NeedsAnswer: a person has to answer the Question first.
	NeedsAnswer Verdict = iota
	// Allowed: the call may be made.
	Allowed
	// Denied: the call may not be made; the model is told Answer.Refusal.
	Denied
)

// ApprovalRequest is what to ask about a call of t.
func (t *Tool) ApprovalRequest(call Call) ApprovalRequest {
	return ApprovalRequest{
		Key: call.Key, Tool: t.displayName(), Hash: t.Hash(), Description: Clean(t.Description), Arguments: Clean(call.Arguments),
	}
}

func (t *Tool) displayName() string {
	if t.Alias != "" {
		return t.Alias
	}
	return t.Name
}

// ApprovalAnswer is the answer to the question about a call of t.
func (t *Tool) ApprovalAnswer(call Call, allow bool, by, reason string) ApprovalAnswer {
	return ApprovalAnswer{
		Key: call.Key, Tool: t.displayName(), Hash: t.Hash(), Arguments: digest(call.Arguments),
		Allow: allow, Reason: Clean(reason), By: by,
	}
}

// Verdict says what t's policy and the run's earlier answers mean for a call.
// It is pure: the same record gives the same verdict. An answer holds for the
// call it was given for, and for that only while tool and arguments are what
// they were; with ApproveOnce an answer that allowed one call of the same
// definition holds for all. One that refused holds for its own call, so a later
// call is asked about again. The answer returned is the one that decided, zero
// where none did.
func (t *Tool) Verdict(call Call, earlier []ApprovalAnswer) (Verdict, ApprovalAnswer) {
	if t.Approve == "" || t.Approve == ApproveNever {
		return Allowed, ApprovalAnswer{}
	}
	name, hash, arguments := t.displayName(), t.Hash(), digest(call.Arguments)
	verdict, by := NeedsAnswer, ApprovalAnswer{}
	for _, a := range earlier {
		if a.Tool != name || a.Hash != hash {
			continue
		}
		switch {
		case a.Key == call.Key && a.Arguments == arguments && a.Allow:
			return Allowed, a
		case a.Key == call.Key && a.Arguments == arguments:
			return Denied, a
		case t.Approve == ApproveOnce && a.Allow && verdict == NeedsAnswer:
			verdict, by = Allowed, a
		}
	}
	return verdict, by
}

// DenialText is what a model is told about a call that a person refused.
func (a ApprovalAnswer) DenialText() string {
	if a.Reason == "" {
		return fmt.Sprintf("A person refused this call of %s. It was not made.", a.Tool)
	}
	return fmt.Sprintf("A person refused this call of %s: %s. It was not made.", a.Tool, a.Reason)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
