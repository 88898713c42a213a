package anthropic

import (
	"regexp"

	"github.com/weir-run/weir/llm"
)

// idPattern is what the API takes as names of tools and ids of calls.
var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func bounds() llm.NameRules { return llm.NameRules{Tool: idPattern, ID: idPattern, Prefix: "toolu_"} }
