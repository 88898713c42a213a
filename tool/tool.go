// Package tool defines tools that models can call: a name, a schema and a function,
// and the limits of every call.
//
// It must not know flows, contexts or models; a tool call is an effect of the node
// that makes it. The result of a tool is data; this package does not interpret it.
package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weir-run/weir/trajectory"
)

// Tool is something a model can call. Callers use Run, which keeps to the
// limits; Call is the bare function.
type Tool struct {
	// Name matches [a-zA-Z0-9_-]{1,64}; it is what models see.
	Name string
	// Alias is a second name that flows may use, such as "mcp:server/tool"; it
	// is free of spaces and control characters. Lists of names show it instead
	// of Name.
	Alias       string
	Description string
	// Parameters is the JSON Schema of the arguments, an object; nil takes none.
	Parameters map[string]any
	// ReadOnly tools may be called again when an outcome is unknown.
	ReadOnly bool
	// Idempotent tools may be, too: a call under a Key that they know changes nothing
	// further and has the same answer.
	Idempotent bool
	// InOrder has the calls of one answer to such tools made one after another, in the
	// order in which the model wrote them; calls of other tools run in parallel with them.
	InOrder bool
	// OnUnknown says what happens to a call with an unknown outcome, for example because
	// the process ended during it; "" is UnknownRetry for a ReadOnly or Idempotent tool,
	// else UnknownAsk.
	OnUnknown OnUnknown
	// EndsTurn makes a call of this tool the last step of the model's turn: its
	// result is recorded and the model is not asked again.
	EndsTurn bool
	// Timeout bounds one call; 0 is DefaultTimeout, negative is no bound but the
	// node's own.
	Timeout time.Duration
	// MaxOutput is how many bytes of a result, or of an error's text, are kept;
	// 0 is DefaultMaxOutput, negative keeps all. What is left out is nowhere
	// recorded: the limit protects the journal as well as the model.
	MaxOutput int
	// Approve says whether a person is asked before a call; "" is never.
	Approve Approval
	// Origin says where the tool comes from, such as "mcp:github"; a Go function
	// has none. It is part of Hash.
	Origin string
	// Flow is the fingerprint of the flow that a call runs, "" for others. A node that calls
	// the tool without a model runs the flow as its child run instead of calling Call.
	Flow string
	// MissingSecrets returns the names of the secrets that calls need and that do not exist in this process; nil if
	// the tool needs none. A run that names the tool is not recovered by a process that lacks one.
	MissingSecrets func() []string
	// Call runs the tool. Arguments is the JSON text the model wrote; Key is
	// the call's idempotency key. The text returned is data for the model and
	// nothing else; the model gets an error as a failed result.
	Call func(ctx context.Context, call Call) (string, error)
}

// Call is one call of a tool.
type Call struct {
	Key       string
	Arguments string
	Caller    Caller
	// Input is set for a call that continues one whose error was *InputRequired.
	Input *Input
	// OnValue, where set, receives the result as a value; tools call Return.
	OnValue func(value any)
	// OnDeclare, if set, is called with the data that the tool found, used or made;
	// tools call Declare.
	OnDeclare func(trajectory.Artifact)
}

// ClientOrigin is the Origin of tools that the client of a run has. Their calls use nothing of the process.
const ClientOrigin = "client"

// Caller says for whom a tool is called. It comes from the run and never from
// the model.
type Caller struct {
	Run, Flow, User string
	// Node says that a node makes the call without a model.
	Node bool
	// Session is the session that the run is a round of, and Round its number; both
	// are zero for a run that is none.
	Session string
	Round   int
}

// Declare says that the tool found, used or made a piece of data, for the
// trajectory of the run; the model does not see it. It may be called until
// the tool returns. An artifact that cannot be declared is an error, and nothing
// is recorded.
func (c Call) Declare(a trajectory.Artifact) error {
	if err := a.Check(); err != nil {
		return err
	}
	if c.OnDeclare != nil {
		c.OnDeclare(a)
	}
	return nil
}

// Return gives the result of the call as a value, besides the text that models read. A
// node that calls the tool without a model passes it on; models do not see it.
func (c Call) Return(value any) {
	if c.OnValue != nil {
		c.OnValue(value)
	}
}

// Hash identifies what a model and a person see of a tool, and so what
// was approved or pinned: SHA-256, in hex, over name, description, parameters,
// origin and ReadOnly.
func (t *Tool) Hash() string {
	b, err := json.Marshal([]any{t.Name, t.Description, t.Parameters, t.Origin, t.ReadOnly})
	if err != nil { // NewSet refuses such a tool
		b = []byte(err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Set holds tools by name.
type Set struct {
	byName map[string]*Tool
	names  []string
}

// NewSet makes a set; two tools of one name or alias, a name or policy that
// cannot be used, and a tool without a function are errors.
func NewSet(tools ...*Tool) (*Set, error) {
	s := &Set{byName: make(map[string]*Tool, len(tools))}
	for _, t := range tools {
		if err := t.check(); err != nil {
			return nil, err
		}
		name := t.Name
		if t.Alias != "" && t.Alias != t.Name {
			name = t.Alias
		}
		for _, n := range slices.Compact([]string{t.Name, name}) {
			if s.byName[n] != nil {
				return nil, fmt.Errorf("two tools have the name %q", n)
			}
			s.byName[n] = t
		}
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	return s, nil
}

// check reports what keeps a tool from being offered.
func (t *Tool) check() error {
	if !ValidName(t.Name) {
		return fmt.Errorf("tool name %q: use 1 to 64 letters, digits, _ or -", t.Name)
	}
	if len(t.Alias) > 256 || strings.ContainsFunc(t.Alias, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }) {
		return fmt.Errorf("tool %q: its alias %q holds spaces or control characters, or is longer than 256 bytes", t.Name, t.Alias)
	}
	if t.Call == nil {
		return fmt.Errorf("tool %q has no Call", t.Name)
	}
	if err := t.Approve.check(); err != nil {
		return fmt.Errorf("tool %q: %w", t.Name, err)
	}
	if err := t.OnUnknown.check(); err != nil {
		return fmt.Errorf("tool %q: %w", t.Name, err)
	}
	if _, err := json.Marshal(t.Parameters); err != nil {
		return fmt.Errorf("tool %q: its parameters are not JSON: %w", t.Name, err)
	}
	return nil
}

// ValidName reports whether models can call a tool by that name: 1 to 64
// letters, digits, _ or -, which is what every provider takes.
func ValidName(s string) bool {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0
}

// Get returns the tool of that name or alias, nil if there is none. A nil
// Set is empty.
func (s *Set) Get(name string) *Tool {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// Names lists the tools in alphabetical order, each by its alias where it has
// one.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.names)
}
