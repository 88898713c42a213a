package python

// Fact is a part of how code is isolated.
type Fact struct {
	Subject string // "landlock"
	// State is Good, Note or Bad.
	State  string
	Detail string
	// Remedy says what to do where the state is not Good.
	Remedy string
}

// What a fact means.
const (
	StateGood = "ok"
	StateNote = "note" // worth knowing; code is isolated all the same
	StateBad  = "bad"  // no code is run
)
