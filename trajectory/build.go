package trajectory

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/weir-run/weir/convo"
)

// ErrNoCall: a result answers no call of the round.
var ErrNoCall = errors.New("no answer of this round made the call")

// Said says how messages were said.
type Said struct {
	By Attribution
	At time.Time // zero is now
	// After are the nodes that the first of the messages follows from; none are the
	// active branch pointers. The others follow from one another.
	After []ID
	// Attributes are given to each node that is made of a message, beside its own.
	Attributes map[string]any
}

// Told is what messages became.
type Told struct {
	// Ends are the nodes that what is said next follows from.
	Ends []ID
	// Calls are the Actions of the calls, in order.
	Calls []ID
}

// Say adds messages to the round and to its graph:
//
//   - what a user says first is the Query, and so is what has the text of a Query
//     that no message has been; what a user says later is an Action of the kind
//     input,
//   - an assistant's answer that calls tools is an Action of the kind answer; it
//     generates one of the kind call for each call, and that refers_to the Tool
//     that it calls, one for each name in a round,
//   - the result of a call becomes attributes of the call's Action,
//   - an answer that calls nothing is a State,
//   - what the system says is kept among the messages only.
//
// Each answer follows from what was before it, and so from all calls of the
// answer before it. A message whose id the round has is a new version: its text is
// edited, or nothing is done where it is equal.
//
// The messages before the one that an error names have been added.
func (r *Recorder) Say(s Said, messages ...convo.Message) (Told, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := Told{Ends: clone(s.After)}
	if len(told.Ends) == 0 {
		told.Ends = clone(r.record.Current)
	}
	for _, id := range s.After {
		if err := r.own(id); err != nil {
			return told, fmt.Errorf("record messages: %w", err)
		}
	}
	for _, m := range messages {
		if err := r.say(s, &told, m); err != nil {
			return told, fmt.Errorf("record %s message %s: %w", m.Role, m.ID, err)
		}
	}
	return told, nil
}

func (r *Recorder) say(how Said, told *Told, m convo.Message) error {
	by, at := how.By, how.At
	if i := r.said(m.ID); i >= 0 {
		return r.sayAgain(i, by, at, m)
	}
	s := saying{r, told, how, r.moment(at), len(r.record.Messages), m}
	var err error
	switch m.Role {
	case convo.System:
	case convo.User:
		err = s.user()
	case convo.Assistant:
		err = s.assistant()
	case convo.Tool:
		err = s.result()
	default:
		err = fmt.Errorf("%q: %w", m.Role, convo.ErrUnknownRole)
	}
	if err != nil {
		return err
	}
	r.index.messages[m.ID] = len(r.record.Messages)
	r.record.Messages = append(r.record.Messages, m)
	r.revision++
	return nil
}

// said is the place of the message with an id, -1 for none.
func (r *Recorder) said(id string) int {
	if i, ok := r.index.messages[id]; ok && id != "" {
		return i
	}
	return -1
}

// sayAgain puts a new version of a message in the place of the old one.
func (r *Recorder) sayAgain(i int, by Attribution, at time.Time, m convo.Message) error {
	old := r.record.Messages[i]
	if reflect.DeepEqual(old, m) {
		return nil
	}
	if old.Role != m.Role || old.CallID != m.CallID || !slices.Equal(old.Calls, m.Calls) {
		return errors.New("a new version has the same role and the same calls")
	}
	for _, n := range r.record.Nodes {
		var e Edit
		switch position := any(int64(i)); {
		case n.Attributes[Position] == position && n.Attributes[Kind] != Call:
			e.Set = map[string]any{Text: m.Text}
			if m.Reasoning != old.Reasoning {
				e.Set[Reasoning] = m.Reasoning
			}
		case n.Attributes[ResultPosition] == position:
			e.Set = map[string]any{Result: m.Text, Failed: m.Failed}
		default:
			continue
		}
		if err := r.edit(n.ID, e, by, at); err != nil {
			return err
		}
	}
	r.record.Messages[i] = m
	r.revision++
	return nil
}

// saying is one message on its way into the graph; the recorder's mu is held.
type saying struct {
	r        *Recorder
	told     *Told
	how      Said
	at       time.Time
	position int
	m        convo.Message
}

// add makes a node of what the message says; what is said next follows from it.
func (s *saying) add(n New, more Attributes) error {
	values := Attributes{}
	maps.Copy(values, s.how.Attributes)
	maps.Copy(values, s.says())
	maps.Copy(values, more)
	attrs, err := attributes(values)
	if err != nil {
		return err
	}
	n.By, n.At, n.After = s.how.By, s.at, s.told.Ends
	id, err := s.r.add(n, attrs)
	if err == nil {
		s.told.Ends = []ID{id}
	}
	return err
}

// says is what the message says, as attributes.
func (s *saying) says() Attributes {
	values := Attributes{Position: s.position}
	for name, text := range map[string]string{Text: s.m.Text, Reasoning: s.m.Reasoning, MessageID: s.m.ID} {
		if text != "" || name == Text {
			values[name] = text
		}
	}
	return values
}

func (s *saying) user() error {
	if len(s.r.record.Nodes) == 0 {
		return s.add(New{Type: Query}, nil)
	}
	if n := s.r.asked(s.m.Text); n != nil {
		return s.bind(n)
	}
	return s.add(New{Type: Action, Name: Input, Relation: Triggers}, Attributes{Kind: Input})
}

// asked is the round's query, where it has that text and no message has been it.
func (r *Recorder) asked(text string) *Node {
	i, ok := r.index.nodes[r.record.Initial]
	if !ok {
		return nil
	}
	n := &r.record.Nodes[i]
	if _, bound := n.Attributes[Position]; bound || n.Type != Query || n.Attributes[Text] != text {
		return nil
	}
	return n
}

// bind has a node stand for the message. That replaces nothing it says, and is
// no version.
func (s *saying) bind(n *Node) error {
	says, err := attributes(s.says())
	if err != nil {
		return err
	}
	maps.Copy(n.Attributes, says)
	return nil
}

func (s *saying) assistant() error {
	if len(s.m.Calls) == 0 {
		return s.add(New{Type: State, Relation: HasConclusion}, nil)
	}
	if err := s.add(New{Type: Action, Name: Answer, Relation: Triggers}, Attributes{Kind: Answer}); err != nil {
		return err
	}
	answer := s.told.Ends[0]
	s.told.Ends = nil
	for _, c := range s.m.Calls {
		if err := s.call(answer, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *saying) call(answer ID, c convo.Call) error {
	values := Attributes{}
	maps.Copy(values, s.how.Attributes)
	maps.Copy(values, Attributes{
		Kind: Call, Position: s.position, ToolName: c.Name, Arguments: c.Arguments, CallID: c.ID,
	})
	attrs, err := attributes(values)
	if err != nil {
		return err
	}
	call, err := s.r.add(New{
		Type: Action, Name: c.Name, After: []ID{answer}, Relation: Generates, By: s.how.By, At: s.at,
	}, attrs)
	if err != nil {
		return err
	}
	s.told.Ends = append(s.told.Ends, call)
	s.told.Calls = append(s.told.Calls, call)
	_, err = s.r.declare(s.how.By, s.at, call, Artifact{Type: Tool, Name: c.Name, Relation: RefersTo})
	return err
}

// result gives the newest call with the id that has no result yet its own.
func (s *saying) result() error {
	for _, n := range slices.Backward(s.r.record.Nodes) {
		if n.Attributes[Kind] != Call || n.Attributes[CallID] != s.m.CallID {
			continue
		}
		if _, has := n.Attributes[Result]; has {
			continue
		}
		e := Edit{Set: map[string]any{Result: s.m.Text, ResultPosition: s.position}}
		if s.m.ID != "" {
			e.Set[ResultID] = s.m.ID
		}
		if s.m.Failed {
			e.Set[Failed] = true
		}
		return s.r.edit(n.ID, e, s.how.By, s.at)
	}
	return fmt.Errorf("call %q: %w", s.m.CallID, ErrNoCall)
}
