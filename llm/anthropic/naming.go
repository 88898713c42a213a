package anthropic

import (
	"regexp"

	"github.com/weir-run/weir/llm/wire"
)

// idPattern is what the API takes as names of tools and ids of calls.
var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func bounds() wire.Bounds { return wire.Bounds{Tool: idPattern, ID: idPattern, Prefix: "toolu_"} }
