package anthropic

import (
	"regexp"
	"sync"

	"github.com/weir-run/weir/llm"
)

// idPattern matches the names of tools and the ids of calls that the API accepts, and
// argumentPattern the names of arguments. They are compiled on first use.
var (
	idPattern       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })  //nolint:gochecknoglobals // a compiled table
	argumentPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`) }) //nolint:gochecknoglobals // a compiled table
)

func bounds() llm.NameRules {
	return llm.NameRules{Tool: idPattern(), ID: idPattern(), Prefix: "toolu_", Argument: argumentPattern()}
}
