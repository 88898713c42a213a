package python

// Fact is a part of how code is isolated.
type Fact struct {
	About string // "landlock"
	// State is Good, Note or Bad.
	State  string
	Detail string
	// Remedy says what to do where the state is not Good.
	Remedy string
}

// What a fact means.
const (
	Good = "ok"
	Note = "note" // worth knowing; code is isolated all the same
	Bad  = "bad"  // no code is run
)
