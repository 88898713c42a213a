package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Approval says when a person must approve calls of a tool.
type Approval string

// The policies; "" is ApproveNever.
const (
	// ApproveNever requires no approval.
	ApproveNever Approval = "never"
	// ApproveOnce requires approval until one call of the tool, in its present definition,
	// has been approved in the run. Later calls then need none, whatever their arguments.
	ApproveOnce Approval = "once"
	// ApproveAlways requires approval of every call.
	ApproveAlways Approval = "always"
)

func (a Approval) check() error {
	switch a {
	case "", ApproveNever, ApproveOnce, ApproveAlways:
		return nil
	}
	return fmt.Errorf("approve is %q; expected %s, %s or %s", a, ApproveAlways, ApproveOnce, ApproveNever)
}

// ApprovalRequest is the question to a person about one call.
type ApprovalRequest struct {
	Key         string `json:"key"` // the call's idempotency key
	Tool        string `json:"tool"`
	Hash        string `json:"hash"` // of the tool's definition
	Description string `json:"description,omitempty"`
	Arguments   string `json:"arguments"` // as the model wrote them, made safe to display
}

// ApprovalAnswer is a person's answer about one call, as recorded in the run.
type ApprovalAnswer struct {
	Key       string `json:"key"`
	Tool      string `json:"tool"`
	Hash      string `json:"hash"`
	Arguments string `json:"arguments"` // SHA-256 in hex of the arguments
	Allow     bool   `json:"allow"`
	Reason    string `json:"reason,omitempty"`
	By        string `json:"by,omitempty"`
}

// Verdict is the consequence of earlier answers for a call.
type Verdict int

// The verdicts.
const (
	// NeedsAnswer: a person has to answer the question first.
	NeedsAnswer Verdict = iota
	// Allowed: the call may be made.
	Allowed
	// Denied: the call may not be made; the model gets the DenialText.
	Denied
)

// ApprovalRequest returns the question about a call of t.
func (t *Tool) ApprovalRequest(call Call) ApprovalRequest {
	return ApprovalRequest{
		Key: call.Key, Tool: t.DisplayName(), Hash: t.Hash(), Description: Clean(t.Description), Arguments: Clean(call.Arguments),
	}
}

// DisplayName returns the name that flows use: the alias, or else the name.
func (t *Tool) DisplayName() string {
	if t.Alias != "" {
		return t.Alias
	}
	return t.Name
}

// ApprovalAnswer returns the answer to the question about a call of t.
func (t *Tool) ApprovalAnswer(call Call, allow bool, by, reason string) ApprovalAnswer {
	return ApprovalAnswer{
		Key: call.Key, Tool: t.DisplayName(), Hash: t.Hash(), Arguments: digest(call.Arguments),
		Allow: allow, Reason: Clean(reason), By: by,
	}
}

// Verdict returns the consequence of t's policy and the run's earlier answers for a call.
// It is pure: the same record gives the same verdict. An answer applies to its own call,
// and only while tool and arguments are unchanged; with ApproveOnce an approval of one call
// applies to all calls of the same definition. A refusal applies only to its own call, so a
// later call is asked about again. The returned answer is the one that decided, zero if
// none did.
func (t *Tool) Verdict(call Call, earlier []ApprovalAnswer) (Verdict, ApprovalAnswer) {
	if t.Approve == "" || t.Approve == ApproveNever {
		return Allowed, ApprovalAnswer{}
	}
	name, hash, arguments := t.DisplayName(), t.Hash(), digest(call.Arguments)
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

// DenialText returns the result that a model gets for a refused call.
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
