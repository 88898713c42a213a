package flow

import "time"

// The limits of a flow file. Exceeding one is a problem, which is found before memory is
// allocated for the content.
const (
	// MaxYAML is the size of a YAML file, in bytes.
	MaxYAML = 4 << 20
	// MaxJSON is the size of a JSON file, in bytes. The normal form of the largest YAML
	// file is much longer than that file.
	MaxJSON = 64 << 20
	// MaxDepth is the maximum nesting of lists and objects in a file.
	MaxDepth = 64
	// MaxAliased is the maximum number of values that YAML aliases may repeat, all
	// together.
	MaxAliased = 10_000
	// MaxScopes is the maximum nesting of bodies.
	MaxScopes = 8
	// MaxFlows is the maximum number of flows that a flow depends on, MaxUses their maximum
	// nesting, and MaxClosure their maximum total size in bytes.
	MaxFlows          = 200
	MaxUses           = 16
	MaxDependencySize = MaxJSON
	// MaxProblems is the maximum number of reported problems; the last one says that there
	// are more.
	MaxProblems = 500
	// MaxBackoff is the maximum of `backoff`, and the limit up to which the wait doubles.
	MaxBackoff = 5 * time.Minute
	// MaxName is the maximum length of a flow's name, in bytes.
	MaxName = 128
	// MaxPortName is the maximum length of the name of an input, output, port or branch, in
	// characters.
	MaxPortName = 128
	// MaxEdgeID is the maximum length of an edge's id, in bytes. The default id of an edge
	// between ports with the longest names fits.
	MaxEdgeID = 1280
	// The maximum values of budget and view settings.
	maxSpendTokens = 1_000_000_000_000
	maxSpendCalls  = 1_000_000_000
	maxViewTokens  = 100_000_000
	maxKeepResults = 1_000_000
)
