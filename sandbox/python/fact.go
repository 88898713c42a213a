package python

// Fact describes a part of the isolation.
type Fact struct {
	Subject string // "landlock"
	// State is Good, Note or Bad.
	State  string
	Detail string
	// Remedy says what to do if the state is not Good.
	Remedy string
}

// The states of a fact.
const (
	StateGood = "ok"
	StateNote = "note" // worth knowing; code is still isolated
	StateBad  = "bad"  // code is refused
)
