package convo

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrBadChange means that a change cannot be applied: not exactly one of its groups is set,
// or it creates a context that exists.
var ErrBadChange = errors.New("not a change that can be applied")

// Context is a conversation context at one moment. It is a value: a copy is an immutable
// snapshot.
type Context struct {
	ID    string `json:"id"`
	Kind  Kind   `json:"kind"`
	Label string `json:"label,omitempty"`
	// Parent is the context that this one was forked from, "" for none, and At the position
	// of the fork.
	Parent   string   `json:"parent,omitempty"`
	At       int      `json:"at,omitempty"`
	Settings Settings `json:"settings"`
	// History is "messages" in JSON, [] if there are none.
	History History `json:"messages"`
	// Epoch is the position where the current epoch begins.
	Epoch int `json:"epoch,omitempty"`
	// Output is the output of the last node that completed with the context.
	Output string `json:"output,omitempty"`
	// Session is the provider's session id.
	Session string `json:"session,omitempty"`
	// Marks are what views omit.
	Marks Marks `json:"marks,omitzero"`
}

// MarshalJSON writes the context with all its messages.
func (c Context) MarshalJSON() ([]byte, error) {
	type plain Context
	if c.Kind == "" {
		c.Kind = Main
	}
	return json.Marshal(plain(c))
}

// New returns the context that the change creates. The default kind is main.
func New(id string, ch Change) (Context, error) {
	if err := ch.check(); err != nil {
		return Context{}, fmt.Errorf("create context %s: %w", id, err)
	}
	if !ch.Create {
		return Context{}, fmt.Errorf("create context %s: %w: it does not create", id, ErrBadChange)
	}
	c := Context{ID: id, Kind: ch.Kind, Label: ch.Label}
	switch c.Kind {
	case "":
		c.Kind = Main
	case Main, Isolated, Portal:
	default:
		return Context{}, fmt.Errorf("create context %s: %w: unknown kind %q", id, ErrBadChange, ch.Kind)
	}
	if ch.Settings != nil {
		c.Settings = *ch.Settings
	}
	if ch.Marks != nil {
		c.Marks = *ch.Marks
	}
	if ch.Session != nil {
		c.Session = *ch.Session
	}
	c.Epoch = ch.Epoch
	return c, nil
}

// check reports a change that does not have exactly one of its groups.
func (ch Change) check() error {
	n := 0
	for _, set := range []bool{
		ch.Create || ch.Kind != "" || ch.Label != "" || ch.Settings != nil || ch.Epoch != 0,
		len(ch.Append) > 0, ch.Set != nil, ch.Reset, ch.Output != nil, ch.Session != nil && !ch.Create, ch.Marks != nil && !ch.Create,
	} {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("%w: it has %d groups, expected 1", ErrBadChange, n)
	}
	return nil
}

// Apply returns the context after ch; a context is the fold of its changes. A message with
// an id that the current epoch has is a new version of that message, or no change if it is
// equal. Errors wrap ErrBadChange, are those of invalid messages, or are those of a store
// that cannot be read.
func (c Context) Apply(ch Change) (Context, error) {
	if err := ch.check(); err != nil {
		return c, fmt.Errorf("change context %s: %w", c.ID, err)
	}
	switch {
	case len(ch.Append) > 0:
		out, err := c.appendAll(ch.Append)
		out.History.versions = out.History.versions || ch.Versions
		return out, err
	case ch.Set != nil:
		c.Settings = *ch.Set
	case ch.Reset:
		c.Epoch = c.History.Len()
		c.Session, c.Marks = "", Marks{Factor: c.Marks.Factor, Learned: c.Marks.Learned}
	case ch.Output != nil:
		c.Output = *ch.Output
	case ch.Session != nil:
		c.Session = *ch.Session
	case ch.Marks != nil:
		c.Marks = *ch.Marks
	default:
		return c, fmt.Errorf("change context %s: %w: it exists already", c.ID, ErrBadChange)
	}
	return c, nil
}

func (c Context) appendAll(ms []Message) (Context, error) {
	out := c
	for _, m := range ms {
		m, err := m.Normalized()
		if err != nil {
			return c, fmt.Errorf("change context %s: %w", c.ID, err)
		}
		old, known, err := out.newestOf(m.ID)
		if err != nil {
			return c, fmt.Errorf("change context %s: %w", c.ID, err)
		}
		if !known || !old.Equal(m) {
			out.History = out.History.appendOne(&m)
			out.History.versions = out.History.versions || known
		}
	}
	return out, nil
}

// Extend is Apply for an Append of new messages only, and avoids looking up their ids. The
// record of the change says whether that is so (the number of added positions and, as
// versions, whether it has new versions).
func (c Context) Extend(ms []Message, versions bool) (Context, error) {
	out := c
	out.History.versions = out.History.versions || versions
	for _, m := range ms {
		m, err := m.Normalized()
		if err != nil {
			return c, fmt.Errorf("change context %s: %w", c.ID, err)
		}
		out.History = out.History.appendOne(&m)
	}
	return out, nil
}

// newestOf returns the newest version of a message of the current epoch.
func (c Context) newestOf(id string) (Message, bool, error) {
	if id == "" {
		return Message{}, false, nil
	}
	if c.History.base.len() <= c.Epoch {
		m, pos := c.History.findLoaded(id)
		return m, pos >= c.Epoch && pos >= 0, nil
	}
	m, pos, err := c.History.Lookup(id)
	return m, pos >= c.Epoch && pos >= 0, err
}

// WithoutMessages returns c without its messages and their consequences: its identity and
// settings remain.
func (c Context) WithoutMessages() Context {
	return Context{
		ID: c.ID, Kind: c.Kind, Label: c.Label, Settings: c.Settings,
		Marks: Marks{Factor: c.Marks.Factor, Learned: c.Marks.Learned},
	}
}

// Fork returns a new context that starts as c is now, without c's output and provider
// session. The cost does not depend on the length.
func (c Context) Fork(id string) Context {
	return Context{
		ID: id, Kind: Isolated, Label: c.Label, Parent: c.ID, At: c.History.Len(),
		Settings: c.Settings, History: c.History, Epoch: c.Epoch, Marks: c.Marks,
	}
}

// Messages returns the current epoch: the newest version of each message, in the place of
// its first version. The list belongs to the caller.
func (c Context) Messages() ([]Message, error) { return c.History.newestVersions(c.Epoch) }

// AddedSince returns what was added from position from on; with At, what a lane added since
// its fork. Versions are treated as in Messages.
func (c Context) AddedSince(from int) ([]Message, error) { return c.History.newestVersions(from) }
