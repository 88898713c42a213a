package gemini

import (
	"regexp"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// Names of functions that every version of the API accepts, and ids without white space.
// The patterns are compiled on first use.
var (
	toolPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`) }) //nolint:gochecknoglobals // a compiled table
	idPattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[!-~]{1,64}$`) })                    //nolint:gochecknoglobals // a compiled table
)

// withAPINames is req under the names that the API takes.
func withAPINames(req *llm.Request) (*llm.Request, *llm.Names) {
	held := 0
	if usesInteractions(req) && continuesSession(req) {
		held = req.HeldMessages
	}
	return llm.NameRules{Tool: toolPattern(), ID: idPattern(), Prefix: "call_"}.Rename(req, held)
}

// haveDistinctIDs says that calls have ids that tell them apart; others are matched
// by their order.
func haveDistinctIDs(calls []convo.Call) bool {
	seen := map[string]bool{}
	for _, c := range calls {
		if c.ID == "" || seen[c.ID] {
			return false
		}
		seen[c.ID] = true
	}
	return true
}
