package flow

import "time"

// The bounds of a flow file. What passes one is a problem, found before memory
// is spent on it.
const (
	// MaxYAML is the size of a YAML file, in bytes.
	MaxYAML = 4 << 20
	// MaxJSON is the size of a JSON file, in bytes: the normal form of the
	// largest YAML file is a good deal longer than that file.
	MaxJSON = 64 << 20
	// MaxDepth is how deep lists and objects may nest in a file.
	MaxDepth = 64
	// MaxAliased is how many values YAML aliases may repeat, all together.
	MaxAliased = 10_000
	// MaxScopes is how deep bodies of loops may nest.
	MaxScopes = 8
	// MaxFlows is how many flows the closure of a flow may have, MaxUses how deep
	// flows may use each other, and MaxClosure their size all together, in bytes.
	MaxFlows          = 200
	MaxUses           = 16
	MaxDependencySize = MaxJSON
	// MaxProblems is how many problems are reported; the last one says that
	// there are more.
	MaxProblems = 500
	// MaxBackoff bounds the wait before another attempt of a node: `backoff` may be as
	// long, and doubles no further.
	MaxBackoff = 5 * time.Minute
	// MaxName is the length of the name of a flow, in bytes.
	MaxName = 128
	// MaxEdgeID is the length of an edge's id, in bytes.
	MaxEdgeID = 512
	// What settings of budgets and views may be at most.
	maxSpendTokens = 1_000_000_000_000
	maxSpendCalls  = 1_000_000_000
	maxViewTokens  = 100_000_000
	maxKeepResults = 1_000_000
)
