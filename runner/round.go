package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/lru"
)

// Round identifies the round of a session, and the part of the session that it continues. The store has created the
// run; see store.SessionStore.
type Round struct {
	Session string
	Number  int // from 1
	// At is the number of messages of the session, and Main the state of the main context after its last round, as in
	// store.Append.Carryover.
	At   int
	Main []byte
	// MaxMessages and MaxTokens limit the history with which the round starts, 0 for no limit; Count counts the
	// tokens.
	MaxMessages, MaxTokens int
	Count                  convo.Counter
	// Seed are messages that become the first of the session's history; only for its first round.
	Seed []convo.Message
	// Allowances are the session's own budgets, with their usage.
	Allowances []engine.Account
	// Repeats is the round that this one repeats, nil for none.
	Repeats *engine.RepeatedRound
}

// RepeatOptions returns the options of a round that repeats the one that began with s: the same
// inputs and model settings. Its state and its history are those of the session by then.
func RepeatOptions(s *engine.RunStarted) (b StartOptions, err error) {
	b.Inputs, b.Folder = s.Inputs, s.Folder
	if len(s.Contexts) == 0 {
		return b, nil
	}
	main, err := changeOf(s.Contexts[0].Body)
	if err == nil && main.Settings != nil {
		b.Settings = *main.Settings
	}
	return b, err
}

// historyReader reads the history with which a round starts.
type historyReader interface {
	SessionHistory(ctx context.Context, session string, from, to int) ([]convo.Message, error)
	FindMessage(ctx context.Context, run, conversation, message string, n int) (int, error)
}

// carryover is the state of a round's main context with which the next one starts.
type carryover struct {
	Epoch    int         `json:"epoch,omitempty"`
	Marks    convo.Marks `json:"marks,omitzero"`
	Session  string      `json:"session,omitempty"` // the provider's
	Versions bool        `json:"versions,omitempty"`
	// Model is the model to which Session, and the factor of Marks, belong.
	Model string `json:"model,omitempty"`
}

func carryoverOf(c convo.Context) carryover {
	return carryover{
		Epoch: c.Epoch, Marks: c.Marks, Session: c.Session, Versions: c.History.Versions(), Model: modelOf(c.Settings),
	}
}

func (r carryover) equal(o carryover) bool {
	return r.Epoch == o.Epoch && r.Session == o.Session && r.Versions == o.Versions && r.Model == o.Model &&
		r.Marks.Equal(o.Marks) && r.Marks.Learned == o.Marks.Learned
}

func modelOf(s convo.Settings) string { return s.Provider + "/" + s.Model }

// start completes the first event of a round, and makes the machine create its main context from the session's
// history.
func (r *Round) start(m *machine, kept *sessionCache, e *engine.RunStarted, settings convo.Settings) error {
	var left carryover
	if len(r.Main) > 0 {
		if err := json.Unmarshal(r.Main, &left); err != nil {
			return fmt.Errorf("session %s: what round %d left of its context cannot be read: %w", r.Session, r.Number-1, err)
		}
	}
	c := convo.Context{ID: engine.MainContext, Settings: settings, Epoch: left.Epoch, Marks: left.Marks, Session: left.Session}
	if left.Model != modelOf(settings) {
		c.Session, c.Marks.Factor, c.Marks.Learned = "", 0, 0
	}
	m.sessionPast = newSessionPast(m, r.Session, m.run.ID, r.At)
	m.sessionPast.lastCarryover, m.sessionPast.hasCarryover = left, len(r.Main) > 0
	if h, ok := kept.take(r.Session, r.At); ok {
		c.History = h
	} else {
		c = convo.Restore(c, r.At, left.Versions, m.sessionPast)
	}
	c, err := c.Cap(r.MaxMessages, r.MaxTokens, r.Count)
	if err != nil {
		return fmt.Errorf("session %s: %w", r.Session, err)
	}
	m.sessionPast.history, m.sessionPast.cached = c.History, true
	e.Session, e.Round, e.Allowances, e.Repeats = r.Session, r.Number, r.Allowances, r.Repeats
	change := &convo.Change{
		Create: true, Kind: convo.Main, Settings: &settings, Epoch: c.Epoch, Versions: c.History.Versions(),
	}
	if !c.Marks.Equal(convo.Marks{}) || c.Marks.Learned != 0 {
		change.Marks = &c.Marks
	}
	if c.Session != "" {
		change.Session = &c.Session
	}
	e.Contexts = []engine.ContextChange{{ID: engine.MainContext, Create: true, Session: r.Session, At: r.At, Body: change}}
	if len(r.Seed) > 0 {
		e.Contexts = append(e.Contexts, engine.ContextChange{ID: engine.MainContext, Adds: len(r.Seed), Body: &convo.Change{Append: r.seedMessages()}})
	}
	return nil
}

// seedMessages returns the seed with ids that are unique in the session and its forks.
func (r *Round) seedMessages() []convo.Message {
	out := slices.Clone(r.Seed)
	for i := range out {
		out[i].ID = strconv.Itoa(r.Number) + "." + strconv.Itoa(r.At) + "/seed#" + strconv.Itoa(i+1)
	}
	return out
}

// SeedOf returns the messages with which the first round of a session started besides its own, with the ids of that round.
func SeedOf(s *engine.RunStarted) []convo.Message {
	for _, c := range s.Contexts {
		if body, err := changeOf(c.Body); err == nil && c.ID == engine.MainContext && !c.Create {
			return slices.Clone(body.Append)
		}
	}
	return nil
}

// continueSession creates the context that continues a session's history.
func (m *machine) continueSession(ch *engine.ContextChange) error {
	body, err := changeOf(ch.Body)
	if err != nil {
		return err
	}
	c, err := convo.New(ch.ID, body)
	if err != nil {
		return err
	}
	if m.sessionPast == nil { // a replay
		m.sessionPast = newSessionPast(m, ch.Session, m.run.ID, ch.At)
		m.sessionPast.loaded.Store(true)
	}
	if m.sessionPast.cached && m.sessionPast.history.Len() == ch.At {
		c.History = m.sessionPast.history
	} else {
		c = convo.Restore(c, ch.At, body.Versions, m.sessionPast)
	}
	m.contexts[ch.ID] = c
	return nil
}

// carryoverChange returns the carryover of a commit, nil if it is unchanged or the run is not a round.
func (m *machine) carryoverChange() []byte {
	if m.sessionPast == nil {
		return nil
	}
	m.sessionPast.loaded.Store(true) // this commit creates the context, if it does not exist
	now := carryoverOf(m.contexts[engine.MainContext])
	if m.sessionPast.hasCarryover && now.equal(m.sessionPast.lastCarryover) {
		return nil
	}
	m.sessionPast.lastCarryover, m.sessionPast.hasCarryover = now, true
	b, err := json.Marshal(now)
	if err != nil {
		return nil // all its values can be encoded
	}
	return b
}

// sessionPast is the part of a session's history before a round. It is read through the run after the run's first
// commit.
type sessionPast struct {
	journal historyReader
	session string
	run     string
	length  int // its length
	loaded  atomic.Bool
	history convo.History
	cached  bool
	// lastCarryover is the carryover of the last commit, if there was one.
	lastCarryover carryover
	hasCarryover  bool
}

func newSessionPast(m *machine, session, run string, at int) *sessionPast {
	return &sessionPast{journal: m.journal, session: session, run: run, length: at}
}

// messagePrefix returns the prefix of the ids of messages that the run adds. For a round it is its number and the position
// at which it starts in the history, so that ids are unique in the session and its forks; for a child run it is the
// run's id.
func messagePrefix(s *engine.RunStarted) string {
	if s.MessagePrefix != "" {
		return s.MessagePrefix
	}
	if s.Round == 0 || len(s.Contexts) == 0 {
		return ""
	}
	return strconv.Itoa(s.Round) + "." + strconv.Itoa(s.Contexts[0].At) + "/"
}

// parseMessageID parses the prefix of an id.
func parseMessageID(messageID string) (round, at int, ok bool) {
	prefix, _, _ := strings.Cut(messageID, "/")
	first, second, ok := strings.Cut(prefix, ".")
	round, err := strconv.Atoi(first)
	at, err2 := strconv.Atoi(second)
	return round, at, ok && err == nil && err2 == nil
}

// Load implements convo.Source.
func (p *sessionPast) Load(_ string, from, to int) ([]convo.Message, error) {
	return p.journal.SessionHistory(context.Background(), p.session, from, to)
}

// FindMessage implements convo.Finder. An id of this round or a later one is not in the earlier history.
func (p *sessionPast) FindMessage(contextID, messageID string, n int) (int, error) {
	if _, at, made := parseMessageID(messageID); made && at >= p.length {
		return -1, nil
	}
	if p.loaded.Load() {
		return p.journal.FindMessage(context.Background(), p.run, contextID, messageID, n)
	}
	for to := n; to > 0; {
		from := max(to-1024, 0)
		ms, err := p.Load(contextID, from, to)
		if err != nil {
			return -1, err
		}
		for i, m := range slices.Backward(ms) {
			if m.ID == messageID {
				return from + i, nil
			}
		}
		to = from
	}
	return -1, nil
}

// sessionCache is a cache of the histories of sessions as the last rounds that this process executed left them. An
// evicted one is read from the store.
type sessionCache struct {
	mu        sync.Mutex
	histories lru.Map[string, convo.History] // by session
}

// put caches the history after a round that has ended.
func (t *sessionCache) put(m *machine) {
	if m.sessionPast == nil || !m.run.Status().Ended() {
		return
	}
	h := m.contexts[engine.MainContext].History
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.Loaded() > maxPausedMessages {
		t.histories.Remove(m.sessionPast.session)
		return
	}
	t.histories.Max = maxPausedRuns
	t.histories.Put(m.sessionPast.session, h)
}

// take removes and returns the history of a session if it still has n messages: histories only grow, so that it is then
// unchanged.
func (t *sessionCache) take(session string, n int) (convo.History, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.histories.Remove(session)
	return h, ok && h.Len() == n
}

// attachSession prepares a machine that was loaded from a checkpoint.
func (m *machine) attachSession(j historyReader) {
	m.journal = j
	if s := m.run.Start; s.Session != "" {
		m.sessionPast = newSessionPast(m, s.Session, m.run.ID, s.Contexts[0].At)
		m.sessionPast.loaded.Store(true)
	}
}
