package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// SendOptions are options of one message; the zero value works.
type SendOptions struct {
	// ID identifies the message among all messages of the store: sending it again returns
	// the same Reply. With another text, sender, model, seed, or other inputs or settings, that is an
	// error with the code request_reused. A message that has answered a question is compared with
	// the answer alone. "" generates an id.
	ID string
	// By is recorded as the sender; "" is the session's user.
	By string
	// Busy is what to do while a round is running, in place of the flow's setting:
	// flow.BusyQueue, flow.BusyReject or flow.BusyFork.
	Busy string
	// Inputs are inputs of the flow besides the message.
	Inputs map[string]any
	// Model replaces the flow's model for the round: "provider/model".
	Model string
	// Settings change the model settings of the main context for the round.
	Settings RoundSettings
	// Seed are messages of a conversation that took place elsewhere: they are added to the
	// history before the round. Only the first message of a session may have them.
	Seed []convo.Message
	// Origin is recorded as what started the round: KIND or KIND:NAME. "" is "session:ID".
	Origin string
}

// queuedInput is a message in the form in which the queue keeps it.
type queuedInput struct {
	message engine.Value
	inputs  map[string]any
	model   string
	origin  string
	// settings are kept as they are given.
	settings RoundSettings
	seed     []convo.Message
	// flow is the fingerprint of the flow that the message was sent to, and sender the
	// process that sent it, as an owner of runs. With them another process can start the
	// round.
	flow, sender string
	// repeats is the round that this message repeats, nil for none.
	repeats *repetition
}

func (m *queuedInput) encode() engine.Value {
	v := map[string]any{"message": m.message}
	if len(m.inputs) > 0 {
		v["inputs"] = m.inputs
	}
	if m.model != "" {
		v["model"] = m.model
	}
	if m.origin != "" {
		v["origin"] = m.origin
	}
	if s := m.settings.encode(); s != nil {
		v["settings"] = s
	}
	if len(m.seed) > 0 {
		v["seed"] = encodeSeed(m.seed)
	}
	if m.flow != "" {
		v["flow"], v["process"] = m.flow, m.sender
	}
	return v
}

func decodeQueuedInput(v engine.Value) *queuedInput {
	o, ok := v.(map[string]any)
	if !ok {
		return &queuedInput{message: v}
	}
	m := &queuedInput{message: o["message"]}
	m.inputs, _ = o["inputs"].(map[string]any)
	m.model, _ = o["model"].(string)
	m.origin, _ = o["origin"].(string)
	m.settings = decodeRoundSettings(o["settings"])
	m.seed = decodeSeed(o["seed"])
	m.flow, _ = o["flow"].(string)
	m.sender, _ = o["process"].(string)
	return m
}

// Send sends a message: a text, a Message, or, if the session waits for an answer, any
// value that fits the question. When Send returns, the message is durable. It starts a
// round as soon as the earlier messages have been answered, or answers the round that
// waits.
//
// A message is refused, and not kept, if it is empty or the flow cannot take it
// (input_invalid), if it does not fit the question that the session waits for
// (runner.ErrAnswer), if the session waits for something else, also beside questions (a *WaitingError), or, with
// the policy reject, while a round is running (store.ErrBusy). Cancelling ctx after Send
// has returned changes nothing; Reply.Wait returns the result.
func (s *Session) Send(ctx context.Context, message any, o SendOptions) (*Reply, error) {
	t, err := s.keep(ctx, message, o)
	if err != nil {
		return nil, err
	}
	return s.m.drivers.add(t)
}

// Receipt says where a message is that was kept.
type Receipt struct {
	// Session is the session, which is a fork if the session was busy and its policy is fork.
	Session string
	// Message is the id of the message.
	Message string
	// Run is the round that has taken the message, "" while the message waits.
	Run string
}

// Enqueue keeps a message as Send does, and leaves it to another process, or to the next
// sender, to start a round with it or to answer the waiting round. With a known ID it returns
// where that message is.
func (s *Session) Enqueue(ctx context.Context, message any, o SendOptions) (Receipt, error) {
	t, err := s.keep(ctx, message, o)
	if err != nil {
		return Receipt{}, err
	}
	q, err := s.m.store.FindQueued(ctx, t.Message)
	return Receipt{Session: t.Session.ID, Message: t.Message, Run: q.TakenBy}, err
}

// keep stores a message, if it is not known, and returns its reply, which no driver has yet.
func (s *Session) keep(ctx context.Context, message any, o SendOptions) (*Reply, error) {
	said := &queuedInput{inputs: o.Inputs, model: o.Model, origin: o.Origin, settings: o.Settings, sender: s.m.local.Owner()}
	if s.flow != nil {
		said.flow = s.flow.Fingerprint()
	}
	var err error
	if said.seed, err = checkSeed(o.Seed); err != nil {
		return nil, err
	}
	if said.message, err = engine.Normalize(message); err == nil && o.Inputs != nil {
		var v engine.Value
		v, err = engine.Normalize(o.Inputs)
		said.inputs, _ = v.(map[string]any)
	}
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeInput, Message: "the message cannot be kept: " + err.Error(), Permanent: true}
	}
	id := cmp.Or(o.ID, runner.NewID())
	for {
		t, err := s.send(ctx, id, said, o)
		if !errors.Is(err, errSentConcurrently) || ctx.Err() != nil {
			return t, err
		}
	}
}

// errSentConcurrently: another sender has just stored a message with the same id, here or
// in a fork. A retry finds it.
var errSentConcurrently = errors.New("the message was sent meanwhile")

// send stores a message and returns its reply. The write that stores the message also
// decides whether the session is idle, so that exactly one of many concurrent senders, in
// any processes, finds it idle.
func (s *Session) send(ctx context.Context, id string, said *queuedInput, o SendOptions) (*Reply, error) {
	if o.ID != "" {
		known, err := s.m.store.FindQueued(ctx, id)
		if err == nil {
			return s.resend(ctx, &known, said, o)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	row, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	busy, err := s.checkSend(ctx, &row, said)
	if err != nil {
		return nil, err
	}
	policy := cmp.Or(o.Busy, s.flow.Session.Busy, flow.BusyQueue)
	q := store.QueuedMessage{
		ID: id, Session: s.ID, Value: said.encode(), By: cmp.Or(o.By, s.User), At: time.Now(), OnlyIfIdle: policy != flow.BusyQueue,
	}
	if !busy || !q.OnlyIfIdle {
		var kept store.QueuedMessage
		kept, err = s.m.store.Enqueue(ctx, q)
		if busy = errors.Is(err, store.ErrBusy); err == nil {
			q = kept // another sender's, if it was sent twice
			err = s.m.checkRepeats(ctx, &kept, said, q.By)
		}
	}
	switch {
	case busy && policy == flow.BusyReject:
		return nil, busyError(&row)
	case busy && policy == flow.BusyFork:
		return s.sendToFork(ctx, &row, q, o)
	case errors.Is(err, store.ErrExists) && o.ID != "":
		return nil, errSentConcurrently
	case err != nil:
		return nil, fmt.Errorf("send to session %s: %w", s.ID, err)
	}
	t := newReply(s, id, o)
	if row.Holder == "" && row.Queued == 0 && q.TakenBy == "" {
		t.idle = &idleSession{row, q}
	}
	return t, nil
}

// resend returns the reply to a message that is stored: in the session, or in the fork
// that was made for it while the session was busy.
func (s *Session) resend(ctx context.Context, known *store.QueuedMessage, said *queuedInput, o SendOptions) (*Reply, error) {
	t, err := s.replyTo(ctx, known, o)
	if err == nil {
		err = s.m.checkRepeats(ctx, known, said, cmp.Or(o.By, s.User))
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// replyTo returns a reply that no driver has yet.
func (s *Session) replyTo(ctx context.Context, known *store.QueuedMessage, o SendOptions) (*Reply, error) {
	in := s
	switch known.Session {
	case s.ID:
	case forkIDForMessage(s.ID, known.ID):
		row, err := s.m.store.Session(ctx, known.Session)
		if err != nil {
			return nil, err
		}
		in = s.m.session(&row, s.flow)
	default:
		return nil, fmt.Errorf("message %s: %w, to session %s", known.ID, store.ErrExists, known.Session)
	}
	return newReply(in, known.ID, o), nil
}

func busyError(row *store.Session) error {
	return fmt.Errorf("session %s: round %d has not ended: %w", row.ID, row.Rounds, store.ErrBusy)
}

// sendToFork creates a fork of the session together with its first message, in one write.
// The fork does not become the active session.
func (s *Session) sendToFork(ctx context.Context, row *store.Session, q store.QueuedMessage, o SendOptions) (*Reply, error) {
	q.Session, q.OnlyIfIdle = forkIDForMessage(s.ID, q.ID), false
	n := store.NewSession{ID: q.Session, User: s.User, Flow: s.Flow, Parent: s.ID, ParentLength: row.Length, Now: q.At, FirstMessage: &q}
	if ttl := s.flow.Session.TTL; ttl > 0 {
		n.Expires = n.Now.Add(ttl)
	}
	err := s.m.store.CreateSession(ctx, n)
	if errors.Is(err, store.ErrExists) { // the message is stored, or was removed and is sent again
		if _, err = s.m.store.FindQueued(ctx, q.ID); err == nil {
			return nil, errSentConcurrently
		}
		if errors.Is(err, store.ErrNotFound) {
			_, err = s.m.store.Enqueue(ctx, q)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("send in a fork of session %s: %w", s.ID, err)
	}
	other, err := s.m.store.Session(ctx, q.Session)
	if err != nil {
		return nil, err
	}
	return newReply(s.m.session(&other, s.flow), q.ID, o), nil
}

// forkIDForMessage returns the id of the fork for a message that was sent while the
// session was busy. It follows from both ids, so that sending the message again finds the
// fork.
func forkIDForMessage(session, message string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + message))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:26])
}

// checkSend checks that what the session waits for now can take the message. busy reports
// that the message must wait.
func (s *Session) checkSend(ctx context.Context, row *store.Session, said *queuedInput) (busy bool, err error) {
	if len(said.seed) > 0 && (row.Length > 0 || row.Rounds > 0 || row.Queued > 0) {
		return false, errSeedNotFirst(s.ID)
	}
	if row.Holder != "" {
		r, err := s.m.store.Run(ctx, row.Holder)
		if err != nil {
			return false, err
		}
		if r.Head.Status == engine.Paused && row.Queued == 0 && s.m.held(row.Holder) == nil {
			_, err := s.m.answerTo(ctx, row, &r, said)
			return false, err
		}
		return !r.Head.Status.Ended(), s.checkStartsRound(said)
	}
	return row.Queued > 0, s.checkStartsRound(said)
}

// checkStartsRound checks that the message can start a round.
func (s *Session) checkStartsRound(said *queuedInput) error {
	if isEmptyMessage(said.message) {
		return errEmptyMessage(s.ID)
	}
	return s.m.checkCanStartRound(s.flow, said)
}

// startOptions returns the options of a round that starts with the message.
func (m *queuedInput) startOptions(f *flow.Flow) (b runner.StartOptions, err error) {
	if m.repeats != nil {
		return m.repeats.options, nil
	}
	if m.origin != "" {
		if err := runner.CheckOrigin(m.origin); err != nil {
			return b, err
		}
	}
	inputs := make(map[string]any, len(m.inputs)+1)
	maps.Copy(inputs, m.inputs)
	in, ok := MessageInput(f)
	switch {
	case !ok:
	case in.Type == flow.TypeText:
		inputs[in.Name] = node.TextOf(m.message)
	default:
		inputs[in.Name] = m.message
	}
	b.Settings = runner.SettingsFor(f, m.model)
	m.settings.apply(&b.Settings)
	b.Inputs, err = runner.CheckInputs(f, inputs)
	return b, err
}

// roundBeginning returns the options with which the run of a round starts, for the session
// as it is in the store.
func (m *Manager) roundBeginning(ctx context.Context, f *flow.Flow, row *store.Session, run string, said *queuedInput) (runner.StartOptions, error) {
	b, err := said.startOptions(f)
	if err != nil {
		return b, err
	}
	b.ID, b.User, b.Origin = run, row.User, cmp.Or(said.origin, "session:"+row.ID)
	b.Inputs = said.roundInputs(f, b.Inputs)
	if b.State, err = m.stateForRound(ctx, f, row); err != nil {
		return b, err
	}
	spend := f.Session.Spend
	if spend != (flow.SpendLimits{}) {
		more, err := m.budgetIncrease(ctx, row.ID)
		if err != nil {
			return b, err
		}
		spend = increased(spend, more)
	}
	b.Round = &runner.Round{
		Session: row.ID, Number: row.Rounds, At: row.Length, Main: row.Carryover, Seed: said.seed,
		MaxMessages: f.Session.MaxMessages, MaxTokens: f.Session.MaxTokens,
		Allowances: sessionAccounts(spend, row.Usage),
	}
	if said.repeats != nil {
		b.Round.Repeats = &said.repeats.RepeatedRound
	}
	if b.Round.MaxTokens > 0 {
		if b.Round.Count, err = m.counterOf(b.Settings); err != nil {
			return b, err
		}
	}
	b.Agents, err = m.agentsBefore(ctx, f, row)
	return b, err
}

// sessionAccounts returns the budget account of a session whose rounds have used this
// much; nil without a budget.
func sessionAccounts(s flow.SpendLimits, used engine.Usage) []engine.Account {
	if s == (flow.SpendLimits{}) {
		return nil
	}
	a := engine.Account{Path: "session", OnLimit: cmp.Or(s.OnLimit, "fail"), Used: used}
	a.Max.Calls, a.Max.Input = s.MaxCalls, s.MaxTokens
	if s.MaxCost > 0 {
		a.Max.CostMicros = max(engine.Micros(s.MaxCost), 1)
	}
	return []engine.Account{a}
}

// WaitingError reports that the round of the session waits for something that a message
// does not answer.
type WaitingError struct {
	Session, Run string
	// Interrupts are what the round waits for.
	Interrupts []engine.Interrupt
}

// Error names what the round waits for.
func (e *WaitingError) Error() string { return e.asError().Error() }

// Unwrap returns the error with its code and a hint.
func (e *WaitingError) Unwrap() error { return e.asError() }

func (e *WaitingError) asError() *engine.Error {
	var list []string
	for _, i := range e.Interrupts {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s (%s) %s", i.ID, i.Kind, i.Prompt)))
	}
	return &engine.Error{
		Code: engine.CodeSessionWaits, Permanent: true,
		Message: fmt.Sprintf("session %s waits for what a message does not answer: %s", e.Session, strings.Join(list, "; ")),
		Hint:    fmt.Sprintf("answer run %s by the interrupt's id: `%s`", e.Run, engine.CommandLine("answer", e.Run, "INTERRUPT", "VALUE")),
	}
}

// AnsweredQuestion returns which of the open questions of a round the next message answers: the first, if the round waits
// for nothing but questions to a person. Otherwise it returns nil: what was meant for an approval, or for a tool of
// the client, must not become the answer to a question beside it.
func AnsweredQuestion(open []engine.Interrupt) *engine.Interrupt {
	for i := range open {
		if open[i].Kind != engine.AwaitInput || len(open) > 1 && ClientCallOf(&open[i]) != nil {
			return nil
		}
	}
	if len(open) == 0 {
		return nil
	}
	return &open[0]
}

// answerTo returns the message as an answer to the question that it answers.
func (m *Manager) answerTo(ctx context.Context, row *store.Session, r *store.Run, said *queuedInput) (answer, error) {
	open := r.Head.Waiting
	q := AnsweredQuestion(open)
	if q == nil {
		return answer{}, &WaitingError{Session: row.ID, Run: r.ID, Interrupts: open}
	}
	v, err := convertToAnswer(q.Schema, said.message)
	if err != nil {
		return answer{}, fmt.Errorf("session %s asks %q: %w: %w", row.ID, q.Prompt, runner.ErrAnswer, err)
	}
	return answer{interrupt: q.ID, value: v}, ctx.Err()
}

// answer is a value for an interrupt.
type answer struct {
	interrupt string
	value     engine.Value
}

// convertToAnswer converts a message into a value that fits the schema of a question.
func convertToAnswer(schema map[string]any, said engine.Value) (engine.Value, error) {
	err := node.CheckAnswer(schema, said)
	if err == nil {
		return said, nil
	}
	text, ok := said.(string)
	if o, is := said.(map[string]any); is && o["role"] != nil {
		text, ok = o["text"].(string)
	}
	if !ok {
		return nil, err
	}
	return node.ParseAnswer(schema, text)
}

// Answer resolves an interrupt of the session's round by its id: an approval, an event, or
// one of several questions. The Reply is the rest of the round.
func (s *Session) Answer(ctx context.Context, interrupt string, v any, o SendOptions) (*Reply, error) {
	row, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	if row.Holder == "" {
		return nil, fmt.Errorf("session %s: %s: %w", s.ID, interrupt, runner.ErrNoInterrupt)
	}
	r, err := s.m.store.Run(ctx, row.Holder)
	if err != nil {
		return nil, err
	}
	on, err := s.m.runs.Answer(ctx, r.ID, interrupt, v, cmp.Or(o.By, s.User), "")
	if err != nil {
		return nil, err
	}
	return s.replyOfAnswer(ReplyStart{"", r.ID, row.Length, r.Commits, r.Events}, on, o)
}
