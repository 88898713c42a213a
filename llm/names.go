package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"

	"github.com/weir-run/weir/convo"
)

// NameRules are the rules of one API for names of tools and ids of calls.
type NameRules struct {
	// Tool matches valid names of tools.
	Tool *regexp.Regexp
	// ID matches valid call ids. Prefix is the prefix of generated ids; with 32 hexadecimal
	// digits it must match.
	ID     *regexp.Regexp
	Prefix string
	// Argument matches valid names of the arguments of a tool; nil if the API accepts any.
	Argument *regexp.Regexp
}

// Names translates the tool names and call ids of one request to ones that its API accepts,
// and those in the answer back. A model may write anything as the name of a tool or the id
// of a call, and the record keeps it; a history may also come from another vendor's model.
//
// The translated name of a tool depends on the request's tools and on the names that its
// history calls, in their order: names stay distinct, and a sent name does not change while
// the history grows at its end. An accepted name stays as it is, unless it equals a
// generated one.
//
// Every call of a history has a unique id, although models sometimes reuse an id in later
// turns. A result belongs to the newest call with its id; if one message has several such
// calls, to the first that has no result yet.
type Names struct {
	rules         NameRules
	tools         map[string]string // as recorded: as sent
	recordedNames map[string]string // as sent: as recorded
	// sent has the ids under which the newest calls of an id were sent: those of one
	// message that have no result yet, or the last if all have one.
	sent map[string][]string
	used map[string]bool // ids
	// argumentsOf has the translated arguments of a tool, by its recorded name.
	argumentsOf map[string]argumentNames
}

// Rename returns a request in the form that its API accepts: it translates the names of the
// tools and their arguments, of the calls and of the tool choice, the ids of calls and results,
// and the arguments (see NormalizeArguments). It does not change req. The calls of the first Held
// messages keep the ids that the vendor gave.
func (b NameRules) Rename(req *Request, held int) (*Request, *Names) {
	n := &Names{
		rules: b, tools: make(map[string]string, len(req.Tools)), recordedNames: make(map[string]string, len(req.Tools)),
		sent: map[string][]string{}, used: map[string]bool{},
	}
	for _, t := range req.Tools { // names that can stay come first
		if b.Tool.MatchString(t.Name) {
			n.tools[t.Name], n.recordedNames[t.Name] = t.Name, t.Name
		}
	}
	out := *req
	out.Tools = make([]Tool, len(req.Tools))
	for i, t := range req.Tools {
		out.Tools[i] = t
		out.Tools[i].Name = n.tool(t.Name)
		out.Tools[i].Parameters = n.arguments(t.Name, t.Parameters)
	}
	if _, is := n.tools[req.ToolChoice]; is {
		out.ToolChoice = n.tool(req.ToolChoice)
	}
	out.Messages = make([]convo.Message, len(req.Messages))
	for i := range req.Messages {
		out.Messages[i] = n.message(&req.Messages[i], i < held)
	}
	return &out, n
}

// message returns a message with translated names.
func (n *Names) message(m *convo.Message, held bool) convo.Message {
	out := *m
	if m.Role == convo.Tool {
		out.CallID = n.result(m.CallID)
		return out
	}
	if len(m.Calls) == 0 {
		return out
	}
	for _, c := range m.Calls {
		delete(n.sent, c.ID)
	}
	out.Calls = make([]convo.Call, len(m.Calls))
	for i, c := range m.Calls {
		out.Calls[i] = convo.Call{ID: c.ID, Name: n.tool(c.Name), Arguments: c.Arguments}
		if held {
			n.markHeld(c.ID)
			continue
		}
		arguments := string(NormalizeArguments(c.Arguments))
		out.Calls[i].ID, out.Calls[i].Arguments = n.call(c.ID), renameMembers(arguments, n.argumentsOf[c.Name].sent)
	}
	return out
}

// tool returns the translated name of a tool.
func (n *Names) tool(name string) string {
	if as, known := n.tools[name]; known {
		return as
	}
	as := name
	for again := 0; !n.rules.Tool.MatchString(as) || n.isUsed(as); again++ {
		as = ToolNameFor(name, again)
	}
	n.tools[name], n.recordedNames[as] = as, name
	return as
}

// isUsed reports whether a name is already sent for another tool.
func (n *Names) isUsed(as string) bool {
	_, taken := n.recordedNames[as]
	return taken
}

// Answer returns a request's answer with the recorded names. It drops the vendor's
// conversation if a later result could not refer to its call there, because the API does
// not accept the call's id or another call has it.
func (n *Names) Answer(r *Response) *Response {
	for i := range r.Message.Calls {
		c := &r.Message.Calls[i]
		if n.used[c.ID] || !n.rules.ID.MatchString(c.ID) {
			r.Session = ""
		}
		n.used[c.ID] = true
		c.Name = n.recorded(c.Name)
		c.Arguments = renameMembers(c.Arguments, n.argumentsOf[c.Name].declared)
	}
	return r
}

// Emit passes on the pieces of an answer with the recorded names.
func (n *Names) Emit(emit func(Chunk)) func(Chunk) {
	return func(c Chunk) {
		if c.Call != nil {
			call := *c.Call
			call.Name = n.recorded(call.Name)
			c.Call = &call
		}
		emit(c)
	}
}

// recorded returns the recorded name of a tool.
func (n *Names) recorded(as string) string {
	if name, known := n.recordedNames[as]; known {
		return name
	}
	return as
}

// call returns the id under which a call is sent.
func (n *Names) call(id string) string {
	as := id
	for again := 1; !n.rules.ID.MatchString(as) || n.used[as]; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, again))
		as = n.rules.Prefix + hex.EncodeToString(sum[:16])
	}
	n.assignID(id, as)
	return as
}

// markHeld marks the id of a call that the vendor has as used.
func (n *Names) markHeld(id string) { n.assignID(id, id) }

func (n *Names) assignID(id, as string) { n.used[as], n.sent[id] = true, append(n.sent[id], as) }

// result returns the id of the call that a result answers.
func (n *Names) result(id string) string {
	sent := n.sent[id]
	if len(sent) == 0 {
		return id
	}
	if len(sent) > 1 {
		n.sent[id] = sent[1:]
	}
	return sent[0]
}
