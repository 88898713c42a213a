package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"

	"github.com/weir-run/weir/convo"
)

// NameRules are what one API takes as names of tools and ids of calls.
type NameRules struct {
	// Tool matches the name of a tool.
	Tool *regexp.Regexp
	// ID matches a call's id. Prefix begins the ids that are made here; with 32
	// hexadecimal digits it must match.
	ID     *regexp.Regexp
	Prefix string
}

// Names gives the tools and calls of one request the names that its API takes,
// and maps the names in the answer back. A model may write anything as the name
// of a tool or the id of a call, and the record keeps it; a history may also have
// been written by another vendor's model.
//
// The name of a tool is a function of the request's tools and of the names that
// its history calls, in their order: no two names become one, and a name that was
// sent stays what it was while the history grows at its end. A name that the API
// takes stays as it is, unless it is one that was made of another.
//
// Every call of a history has an id of its own, although models do use an id again
// some turns later; a result belongs to the newest call of its id, and where one
// message has several of them, to the first that has none.
type Names struct {
	rules         NameRules
	tools         map[string]string // as recorded: as sent
	recordedNames map[string]string // as sent: as recorded
	// sent are the ids under which the newest calls of an id were sent: those of one
	// message that have no result yet, the last where all have.
	sent map[string][]string
	used map[string]bool // ids
}

// Rename returns a request as its API takes it, and the names in it: those of the
// tools, of the calls and of the choice among the tools, the ids of the calls and
// of what answers them, and arguments as SentArguments has them. Req is not changed. The
// calls of the first messages, as many as the vendor holds, keep the ids that it gave.
func (b NameRules) Rename(req *Request, held int) (*Request, *Names) {
	n := &Names{
		rules: b, tools: make(map[string]string, len(req.Tools)), recordedNames: make(map[string]string, len(req.Tools)),
		sent: map[string][]string{}, used: map[string]bool{},
	}
	for _, t := range req.Tools { // what can stay comes first
		if b.Tool.MatchString(t.Name) {
			n.tools[t.Name], n.recordedNames[t.Name] = t.Name, t.Name
		}
	}
	out := *req
	out.Tools = make([]Tool, len(req.Tools))
	for i, t := range req.Tools {
		out.Tools[i] = t
		out.Tools[i].Name = n.tool(t.Name)
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

// message is a message under the names that are sent.
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
		out.Calls[i].ID, out.Calls[i].Arguments = n.call(c.ID), string(NormalizeArguments(c.Arguments))
	}
	return out
}

// tool is a tool's name as it is sent.
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

// isUsed reports whether a name is sent for another.
func (n *Names) isUsed(as string) bool {
	_, taken := n.recordedNames[as]
	return taken
}

// Answer is a request's answer under the names that are recorded. A conversation at
// the vendor in which a result could not name its call, since the API does not take
// the call's id back or another call has it, is not gone on with.
func (n *Names) Answer(r *Response) *Response {
	for i := range r.Message.Calls {
		c := &r.Message.Calls[i]
		if n.used[c.ID] || !n.rules.ID.MatchString(c.ID) {
			r.Session = ""
		}
		n.used[c.ID] = true
		c.Name = n.recorded(c.Name)
	}
	return r
}

// Emit passes the pieces of an answer on under the names that are recorded.
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

// recorded is the recorded name of a tool that was sent as another.
func (n *Names) recorded(as string) string {
	if name, known := n.recordedNames[as]; known {
		return name
	}
	return as
}

// call is the id under which a call is sent.
func (n *Names) call(id string) string {
	as := id
	for again := 1; !n.rules.ID.MatchString(as) || n.used[as]; again++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, again))
		as = n.rules.Prefix + hex.EncodeToString(sum[:16])
	}
	n.assignID(id, as)
	return as
}

// markHeld takes the id of a call that the vendor has.
func (n *Names) markHeld(id string) { n.assignID(id, id) }

func (n *Names) assignID(id, as string) { n.used[as], n.sent[id] = true, append(n.sent[id], as) }

// result is the id of the call that a result answers.
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
