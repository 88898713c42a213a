package app

import (
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
)

// The answers to an approval.
const (
	ApproveAnswer = "approve"
	RejectAnswer  = "reject"
)

// AnswerOf reads what a person has typed or chosen as the answer to a question. A reason
// belongs to the refusal of an approval. The error says what the question expects.
func AnswerOf(i engine.Interrupt, text, reason string) (engine.Value, error) {
	if i.Kind != engine.AwaitApproval {
		return node.ParseAnswer(i.Schema, text)
	}
	reason = strings.TrimSpace(reason)
	switch {
	case text == ApproveAnswer:
		return ApproveAnswer, nil
	case text == RejectAnswer && reason == "":
		return RejectAnswer, nil
	case text == RejectAnswer:
		return map[string]any{"approve": false, "reason": reason}, nil
	}
	return nil, &engine.Error{Code: engine.CodeAnswer, Permanent: true, Message: "expected " + ApproveAnswer + " or " + RejectAnswer}
}
