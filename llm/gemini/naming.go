package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// maxName is the longest name of a function that every version of the API
// takes.
const maxName = 64

var (
	namePattern = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]*$`)
	badInName   = regexp.MustCompile(`[^a-zA-Z0-9_.:-]`)
)

// callable is a function's name as the API takes it: as it is, or with what it
// does not take replaced and a few digits that keep it apart from others.
func callable(name string) string {
	if len(name) <= maxName && namePattern.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	as := "_" + badInName.ReplaceAllString(name, "_")
	return as[:min(len(as), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
}

// nameOf is the tool that the API calls as.
func nameOf(req *llm.Request, as string) string {
	for _, t := range req.Tools {
		if callable(t.Name) == as {
			return t.Name
		}
	}
	return as
}

// distinct says that calls have ids that tell them apart; others are matched
// by their order.
func distinct(calls []convo.Call) bool {
	seen := map[string]bool{}
	for _, c := range calls {
		if c.ID == "" || seen[c.ID] {
			return false
		}
		seen[c.ID] = true
	}
	return true
}
