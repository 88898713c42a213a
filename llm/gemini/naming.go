package gemini

import (
	"regexp"
	"sync"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// Patterns for function names that every version of the API accepts, and for ids without white space. They are
// compiled on first use.
var (
	toolPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`) }) //nolint:gochecknoglobals // a compiled table
	idPattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[!-~]{1,64}$`) })                    //nolint:gochecknoglobals // a compiled table
)

// withAPINames returns req with names that the API accepts.
func withAPINames(req *llm.Request) (*llm.Request, *llm.Names) {
	held := 0
	if usesInteractions(req) && continuesSession(req) {
		held = req.HeldMessages
	}
	return llm.NameRules{Tool: toolPattern(), ID: idPattern(), Prefix: "call_"}.Rename(req, held)
}

// haveDistinctIDs reports whether calls have distinct ids; otherwise they are matched by order.
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
