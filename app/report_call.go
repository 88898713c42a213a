package app

import (
	"encoding/json"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
)

// CallReport is one model call.
type CallReport struct {
	Call string `json:"call"` // the effect's key
	// Verified says that the journal holds the digest of exactly this request.
	Verified bool            `json:"proven"`
	Sent     json.RawMessage `json:"sent"`
	// Manifest says what of the context was not sent, null where all was.
	Manifest engine.Value `json:"manifest"`
	// ContextStart is what of the conversation came before that, null where nothing did.
	ContextStart *history.ContextStart `json:"earlier"`
	Answer       engine.Value          `json:"answer"`
	Error        *engine.Error         `json:"error"`
	// Digest is that of the request, which is null where the node's type is not at hand.
	Digest string `json:"digest"`
}
