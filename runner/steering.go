package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/store"
)

// ErrSteeringLate: no node of the run works that could take the message.
var ErrSteeringLate = errors.New("no node works that could take the message")

func errSteeringLate(run string) error {
	return fmt.Errorf("run %s: %w", run, ErrSteeringLate)
}

// Steering is a message of a person to a node that works.
type Steering struct {
	// ID identifies the message in the run; sending it again changes nothing.
	ID string
	// Path is the node's, "PATH>NODE" in a child run; "" is the only one that works.
	Path string
	// Text is the message. With Interrupt, the answer in progress ends where it is; then Text
	// may be empty.
	Text      string
	Interrupt bool
	By        string
}

// PostSteering is the kind of a message of an inbox that carries a Steering.
const PostSteering = "steer"

// Post returns the message for the inbox of a run.
func (s *Steering) Post(run string) store.Post {
	return store.Post{
		Run: run, Kind: PostSteering, Name: s.Path, By: s.By,
		Value: map[string]any{"id": s.ID, "text": s.Text, "interrupt": s.Interrupt},
	}
}

// steeringOfPost returns the command of a message of an inbox.
func steeringOfPost(p *store.Post) Command {
	s := Steering{Path: p.Name, By: p.By}
	o, _ := p.Value.(map[string]any)
	s.ID, _ = o["id"].(string)
	s.Text, _ = o["text"].(string)
	s.Interrupt, _ = o["interrupt"].(bool)
	return Steer(s, nil)
}

// Steer sends a message to a node that works, which its next model call takes. It is refused
// with ErrSteeringLate if no such node works, and with input_invalid if several do and none is
// named.
//
// node, if not nil, receives the path of the node that takes the message.
func Steer(s Steering, node *string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		if r.Status().Ended() || r.CancelRequested() || r.Cancelling() {
			return nil, errSteeringLate(r.ID)
		}
		path, err := steeredNode(r, s.Path)
		if err != nil {
			return nil, err
		}
		if child, inner, ok := r.ChildBelow(path); ok {
			below := s
			below.Path = inner
			if node != nil {
				*node = path
			}
			return nil, &childCommand{child.Start, Steer(below, nil)}
		}
		if node != nil {
			*node = path
		}
		added, _ := r.Steering(path)
		if slices.ContainsFunc(added, func(e *engine.SteeringAdded) bool { return e.ID == s.ID }) {
			return nil, nil
		}
		return &engine.SteeringAdded{Path: path, ID: s.ID, Text: s.Text, Interrupt: s.Interrupt, By: s.By}, nil
	}
}

// SteerableNodes lists the paths of the nodes that a message can be sent to, in flow order, and the
// child runs that may have such nodes, as "PATH>". It is empty for a run that takes no messages.
func SteerableNodes(r *engine.Run) []string {
	if r.Status().Ended() || r.CancelRequested() || r.Cancelling() {
		return nil
	}
	return r.Steerable(acceptsSteering)
}

// steeredNode returns the path of the node that takes a message, or "PATH>REST" for one of a
// child run.
func steeredNode(r *engine.Run, path string) (string, error) {
	list := r.Steerable(acceptsSteering)
	switch {
	case path == "" && len(list) == 1:
		return list[0], nil
	case path == "" && len(list) > 1:
		return "", &engine.Error{
			Code: engine.CodeInput, Permanent: true, Run: r.ID,
			Message: "several nodes could take the message: " + strings.Join(list, ", "),
			Hint:    "name the node",
		}
	case slices.Contains(list, path):
		return path, nil
	}
	if outer, _, child := strings.Cut(path, ">"); child && slices.Contains(list, outer+">") {
		return path, nil
	}
	return "", errSteeringLate(r.ID)
}

// Check returns input_invalid for a message that nothing can take.
func (s *Steering) Check() error {
	invalid := func(why string) error {
		return &engine.Error{Code: engine.CodeInput, Permanent: true, Message: "the message " + why}
	}
	switch {
	case strings.TrimSpace(s.Text) == "" && (s.Text != "" || !s.Interrupt):
		return invalid("is empty")
	case len(s.Text) > maxSteering:
		return invalid(fmt.Sprintf("has more than %d bytes", maxSteering))
	case !utf8.ValidString(s.Text):
		return invalid("is not valid UTF-8")
	}
	return CheckName("message id", s.ID)
}

// maxSteering is the maximum size of the text of a Steering, in bytes.
const maxSteering = 256 << 10

// FindSteering returns the path of the node that a message with an id was sent to, from the journals of a run and of the
// child runs that it started; "" if it is in none of them.
func (l *Local) FindSteering(ctx context.Context, run, id string) (path string, err error) {
	var children []engine.Interrupt
	for c, err := range l.store.Commits(ctx, run, 0) {
		if err != nil {
			return "", fmt.Errorf("run %s: %w", run, err)
		}
		for _, e := range c.Events {
			if s, ok := e.(*engine.SteeringAdded); ok && s.ID == id {
				return s.Path, nil
			}
			if w, ok := e.(*engine.NodeWaiting); ok {
				children = append(children, w.Interrupts...)
			}
		}
	}
	for _, i := range children {
		if i.Child == nil {
			continue
		}
		inner, err := l.FindSteering(ctx, i.Child.Run, id)
		switch {
		case errors.Is(err, store.ErrNotFound): // it has not started
		case err != nil:
			return "", err
		case inner != "":
			return engine.BelowChild(i.ID, inner), nil
		}
	}
	return "", nil
}

// PostSteering puts a message into the inbox of a run that another process executes, and waits
// until that process has taken it. It returns the path of the node. The error is ErrSteeringLate if that process has
// refused it, and store.ErrOwned if it did not look in time; the message is then removed.
func (l *Local) PostSteering(ctx context.Context, run string, s Steering) (path string, err error) {
	p := s.Post(run)
	p.At = time.Now()
	if err := l.store.Post(ctx, p); err != nil {
		return "", fmt.Errorf("run %s: %w", run, err)
	}
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	for {
		id, err := l.waitingSteering(ctx, run, s.ID)
		if err == nil && id == 0 {
			path, err := l.FindSteering(ctx, run, s.ID)
			if err == nil && path == "" {
				err = errSteeringLate(run)
			}
			return path, err
		}
		select {
		case <-time.After(l.o.Poll):
		case <-ctx.Done():
			late := context.WithoutCancel(ctx)
			if removed := l.store.RemovePosts(late, []int64{id}); removed != nil {
				return "", fmt.Errorf("run %s: %w", run, removed)
			}
			if path, err := l.FindSteering(late, run, s.ID); path != "" || err != nil {
				return path, err
			}
			return "", fmt.Errorf("run %s: the message was not taken: %w", run, store.ErrOwned)
		}
	}
}

// waitingSteering returns the number of a message in the inbox of a run, 0 if it is not there.
func (l *Local) waitingSteering(ctx context.Context, run, id string) (int64, error) {
	posts, err := l.store.Inbox(ctx, run)
	for i := range posts {
		if o, ok := posts[i].Value.(map[string]any); ok && posts[i].Kind == PostSteering && o["id"] == id {
			return posts[i].ID, err
		}
	}
	return 0, err
}

// acceptsSteering reports whether people may send messages to nodes of the plan.
func acceptsSteering(p *engine.NodePlan) bool {
	return p.Spec != nil && p.Spec.Steered != nil && p.Spec.Steered(p.Def.With)
}

// steering is what people have sent to an attempt; guarded by the attempt's mu.
type steering struct {
	added  []*engine.SteeringAdded // with a text, oldest first
	taken  map[string][]string     // ids, by the key of the model call
	closed bool                    // no more is accepted
	// interrupt ends the model call in progress, nil if there is none.
	interrupt context.CancelCauseFunc
}

func (s *steering) restore(added []*engine.SteeringAdded, taken map[string]*engine.SteeringTaken) {
	s.added = slices.Clone(added)
	if len(taken) > 0 {
		s.taken = make(map[string][]string, len(taken))
	}
	for key, e := range taken {
		s.taken[key] = e.IDs
	}
}

// waiting returns the ids of the messages that no call has taken.
func (s *steering) waiting() []string {
	var out []string
	for _, e := range s.added {
		if !s.isTaken(e.ID) {
			out = append(out, e.ID)
		}
	}
	return out
}

func (s *steering) isTaken(id string) bool {
	for _, ids := range s.taken {
		if slices.Contains(ids, id) {
			return true
		}
	}
	return false
}

// messages returns the messages with the ids.
func (s *steering) messages(ids []string) []node.SteeringMessage {
	var out []node.SteeringMessage
	for i, e := range s.added {
		if slices.Contains(ids, e.ID) {
			out = append(out, node.SteeringMessage{Number: i + 1, Text: e.Text, By: e.By})
		}
	}
	return out
}

// TakeSteering implements node.Steering.
func (a *attempt) TakeSteering(name string) []node.SteeringMessage {
	if !a.steered {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := a.nextKey(name)
	ids, recorded := a.steering.taken[key]
	if recorded || a.isDecided(key) {
		return a.steering.messages(ids)
	}
	if ids = a.steering.waiting(); len(ids) == 0 {
		return nil
	}
	a.recordTaken(key, ids)
	return a.steering.messages(ids)
}

// MoreSteering implements node.Steering.
func (a *attempt) MoreSteering(name string, last, record bool) bool {
	if !a.steered {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := a.nextKey(name)
	ids, recorded := a.steering.taken[key]
	switch {
	case len(ids) > 0:
		return true
	case recorded || a.isDecided(key):
	case len(a.steering.waiting()) > 0:
		return true
	case last && record:
		a.recordTaken(key, nil)
	}
	a.steering.closed = a.steering.closed || last
	return false
}

// recordTaken records what a call takes; a.mu is held.
func (a *attempt) recordTaken(key string, ids []string) {
	if a.steering.taken == nil {
		a.steering.taken = make(map[string][]string)
	}
	a.steering.taken[key] = ids
	a.pending = append(a.pending, &engine.SteeringTaken{Key: key, IDs: ids})
}

// isDecided reports whether what the call takes cannot change: it was made before. An
// inspected attempt only repeats; a.mu is held.
func (a *attempt) isDecided(key string) bool {
	return a.inspection != nil || a.effects[key] != nil || a.startedEffects[key] != nil
}

// nextKey returns the key that the next effect of a name gets; a.mu is held.
func (a *attempt) nextKey(name string) string {
	for n := a.ordinals.of(name) + 1; ; n++ {
		key := a.Path + "/" + name + "#" + strconv.Itoa(n)
		if known := a.effects[key]; known == nil || !known.Superseded {
			return key
		}
	}
}

// allowInterrupt returns the context of a model call that a person may interrupt.
func (a *attempt) allowInterrupt(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steering.interrupt = cancel
	return ctx, func() {
		a.mu.Lock()
		a.steering.interrupt = nil
		a.mu.Unlock()
		cancel(nil)
	}
}

// offerSteering gives a message to the attempt that works, if one does. It returns false if
// the attempt takes no more, or if there is nothing to interrupt.
func (x *Execution) offerSteering(e *engine.SteeringAdded) bool {
	a := x.m.active[e.Path]
	if a == nil {
		return e.Text != ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Text == "" {
		return a.steering.interrupt != nil
	}
	if a.steering.closed || a.returned || a.abandoned || a.stopping.Load() {
		return false
	}
	a.steering.added = append(a.steering.added, e)
	return true
}

// interruptCall ends the model call of a node where it is.
func (x *Execution) interruptCall(path string) {
	a := x.m.active[path]
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.steering.interrupt; cancel != nil {
		cancel(llm.ErrInterrupted)
	}
}

// keepUntakenSteering keeps the messages that no call could take in the history, because the
// node ends at a limit, fails or is cancelled.
func (a *attempt) keepUntakenSteering() {
	a.mu.Lock()
	left := a.steering.messages(a.steering.waiting())
	a.mu.Unlock()
	if len(left) == 0 {
		return
	}
	own, err := a.Own()
	if err != nil || !own.Writable() {
		return
	}
	for _, m := range left {
		if _, err := own.AddUserInput(m.Message(&a.ctx)); err != nil {
			return // the journal has it
		}
	}
}
