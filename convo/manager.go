package convo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// The errors of a manager.
var (
	// ErrReadOnly means that the node was not granted this context for writing.
	ErrReadOnly = errors.New("the context is read-only here")
	// ErrDuplicateID means that Add was given a different message with a known id.
	ErrDuplicateID = errors.New("another message has this id")
)

// Manager is one node's transaction on one context, and the only way to change a context.
// It reads its own changes, which are invisible to others until the node completes. It
// belongs to the node's goroutine.
type Manager struct {
	now      Context
	start    int // number of positions at the start
	writable bool
	prefix   string
	idsMade  int      // number of ids created
	log      []Change // appends and resets, in order
	// userInputs are messages that are kept if the node fails.
	userInputs []Message
	// Other changes; their order relative to the log does not matter.
	settings, output, session, marks bool
}

// NewManager starts a transaction on c.
func NewManager(c Context, writable bool) *Manager {
	return &Manager{now: c, start: c.History.Len(), writable: writable}
}

// SetIDPrefix sets how ids are created for messages without one: the prefix, a dot, and the
// number of the id in this transaction, from 1. The prefix must differ between nodes,
// iterations and runs that write the context, and be the same when an attempt is repeated,
// so that the messages that were kept are recognised. Without a prefix, ids consist of the
// context's id and the position.
func (m *Manager) SetIDPrefix(prefix string) { m.prefix = prefix }

// ID returns the context's id.
func (m *Manager) ID() string { return m.now.ID }

// Writable reports whether the context may be changed.
func (m *Manager) Writable() bool { return m.writable }

// Get returns the context with the changes of this transaction.
func (m *Manager) Get() Context { return m.now }

// Add appends a message and returns it with its id. If the same message exists under its
// id, nothing changes; if a different one exists, Add returns ErrDuplicateID.
func (m *Manager) Add(msg Message) (Message, error) {
	ms, err := m.add([]Message{msg}, false)
	if err != nil {
		return Message{}, err
	}
	return ms[0], nil
}

// AddAll appends all messages in order or, on an error, none.
func (m *Manager) AddAll(msgs []Message) ([]Message, error) { return m.add(msgs, false) }

// Upsert appends a message. Under a known id it becomes the newest version of that message,
// which views show in its place.
func (m *Manager) Upsert(msg Message) (Message, error) {
	ms, err := m.add([]Message{msg}, true)
	if err != nil {
		return Message{}, err
	}
	return ms[0], nil
}

// Prepend puts messages before all others of the current epoch, in their order. A message
// under a known id becomes the newest version of that message in its place, as with Upsert.
// Prepend begins a new epoch that repeats the messages of the old one after the new ones, so
// its cost grows with their number, and a summary or cut of earlier views is recomputed.
func (m *Manager) Prepend(msgs ...Message) ([]Message, error) {
	if err := m.checkWritable("add to"); err != nil {
		return nil, err
	}
	before := *m
	before.log = slices.Clone(m.log)
	out, err := m.prepend(msgs)
	if err != nil {
		*m = before
		return nil, fmt.Errorf("prepend to context %s: %w", m.now.ID, err)
	}
	return out, nil
}

func (m *Manager) prepend(msgs []Message) ([]Message, error) {
	out := make([]Message, len(msgs))
	var first []Message
	var at []int
	for i, msg := range msgs {
		_, known, err := m.now.newestOf(msg.ID)
		if err != nil {
			return nil, err
		}
		if !known {
			first, at = append(first, msg), append(at, i)
			continue
		}
		if out[i], err = m.Upsert(msg); err != nil {
			return nil, err
		}
	}
	if len(first) == 0 {
		return out, nil
	}
	rest, err := m.now.Messages()
	if err != nil {
		return nil, err
	}
	if err := m.Reset(); err != nil {
		return nil, err
	}
	added, err := m.add(first, true)
	if err != nil {
		return nil, err
	}
	for i, msg := range added {
		out[at[i]] = msg
	}
	_, err = m.add(rest, false)
	return out, err
}

// AddUserInput is Add for a person's message to the node, which stays in the record even if
// the node finally fails.
func (m *Manager) AddUserInput(msg Message) (Message, error) {
	at := m.now.History.Len()
	said, err := m.Add(msg)
	if err == nil && m.now.History.Len() > at {
		m.userInputs = append(m.userInputs, said)
	}
	return said, err
}

// UserInputs returns the messages of the transaction that are kept if the node fails.
func (m *Manager) UserInputs() []Message { return m.userInputs }

func (m *Manager) add(msgs []Message, versions bool) ([]Message, error) {
	if err := m.checkWritable("add to"); err != nil {
		return nil, err
	}
	now, made, changed := m.now, m.idsMade, false
	out := make([]Message, 0, len(msgs))
	var added []Message
	for _, msg := range msgs {
		msg, err := msg.Normalized()
		if err != nil {
			return nil, fmt.Errorf("add to context %s: %w", now.ID, err)
		}
		given := msg.ID != ""
		old, known, err := now.assignID(&msg, m.prefix, &made)
		if err != nil {
			return nil, fmt.Errorf("add to context %s: %w", now.ID, err)
		}
		if known && given && !versions && !old.Equal(msg) {
			return nil, fmt.Errorf("add message %q to context %s: %w: use Upsert to change it", msg.ID, now.ID, ErrDuplicateID)
		}
		out = append(out, msg.clone())
		if known && old.Equal(msg) {
			continue
		}
		added = append(added, msg)
		now.History = now.History.appendOne(&msg)
		changed = changed || known
	}
	now.History.versions = now.History.versions || changed
	m.now, m.idsMade = now, made
	m.logAppend(added, changed)
	return out, nil
}

// assignID gives msg an id if it has none, and returns the existing message under its id. A
// created id is never that of another message.
func (c Context) assignID(msg *Message, prefix string, made *int) (old Message, known bool, err error) {
	if msg.ID != "" {
		return c.newestOf(msg.ID)
	}
	if prefix == "" {
		prefix = c.ID
		*made = max(*made, c.History.Len())
	}
	for {
		*made++
		msg.ID = prefix + "." + strconv.Itoa(*made)
		old, known, err = c.newestOf(msg.ID)
		if err != nil || !known || old.Equal(*msg) {
			return old, known, err
		}
	}
}

func (m *Manager) logAppend(added []Message, versions bool) {
	if len(added) == 0 {
		return
	}
	if n := len(m.log); n > 0 && !m.log[n-1].Reset {
		m.log[n-1].Append = append(m.log[n-1].Append, added...)
		m.log[n-1].Versions = m.log[n-1].Versions || versions
		return
	}
	m.log = append(m.log, Change{Append: added, Versions: versions})
}

// SetSystem sets the system instructions.
func (m *Manager) SetSystem(text string) error {
	s := m.now.Settings
	fixUTF8(&text)
	s.System = text
	return m.set(s)
}

// SetModel sets provider and model; the provider may be "" if the model includes it.
func (m *Manager) SetModel(provider, model string) error {
	s := m.now.Settings
	s.Provider, s.Model = provider, model
	return m.set(s)
}

func (m *Manager) set(s Settings) error {
	if err := m.checkWritable("set up"); err != nil {
		return err
	}
	if s != m.now.Settings {
		m.now.Settings, m.settings = s, true
	}
	return nil
}

// Reset begins a new epoch: views start here; the history stays.
func (m *Manager) Reset() error {
	if err := m.checkWritable("reset"); err != nil {
		return err
	}
	if m.now.Epoch == m.now.History.Len() {
		return nil
	}
	m.now.Epoch = m.now.History.Len()
	m.now.Marks = Marks{Factor: m.now.Marks.Factor, Learned: m.now.Marks.Learned}
	m.log = append(m.log, Change{Reset: true})
	return m.SetSession("")
}

// SetOutput sets the context's current output.
func (m *Manager) SetOutput(text string) error {
	if err := m.checkWritable("set the output of"); err != nil {
		return err
	}
	fixUTF8(&text)
	if text != m.now.Output {
		m.now.Output, m.output = text, true
	}
	return nil
}

// SetSession sets the provider's session id.
func (m *Manager) SetSession(id string) error {
	if err := m.checkWritable("set the session of"); err != nil {
		return err
	}
	if id != m.now.Session {
		m.now.Session, m.session = id, true
	}
	return nil
}

// SetMarks sets what views omit.
func (m *Manager) SetMarks(marks Marks) error {
	if err := m.checkWritable("set the marks of"); err != nil {
		return err
	}
	if !marks.Equal(m.now.Marks) || marks.Learned != m.now.Marks.Learned {
		m.now.Marks, m.marks = marks, true
	}
	return nil
}

func (m *Manager) checkWritable(what string) error {
	if !m.writable {
		return fmt.Errorf("%s context %s: %w", what, m.now.ID, ErrReadOnly)
	}
	return nil
}

// Changes returns the changes of the transaction in as few records as possible: applied in
// order to the original context, they give the result of Get. They are for the journal and
// must not be changed.
func (m *Manager) Changes() []Change {
	out := slices.Clone(m.log)
	if m.settings {
		s := m.now.Settings
		out = append(out, Change{Set: &s})
	}
	if m.output {
		o := m.now.Output
		out = append(out, Change{Output: &o})
	}
	if m.session {
		s := m.now.Session
		out = append(out, Change{Session: &s})
	}
	if m.marks {
		k := m.now.Marks
		out = append(out, Change{Marks: &k})
	}
	return out
}

// Adds returns the number of positions that the transaction added.
func (m *Manager) Adds() int { return m.now.History.Len() - m.start }
