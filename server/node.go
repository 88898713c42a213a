package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/history"
	"github.com/weir-run/weir/internal/excerpt"
)

// NodeQuery names a node of a run at an event.
type NodeQuery struct {
	RunPath
	Node string `query:"node" required:"true" doc:"The path of the node, for example refine#2/draft"`
	At   int64  `query:"at" minimum:"0" doc:"The node as it was after this event; 0 is now"`
}

// nodeDetails is a node with beginnings of its values.
type nodeDetails struct {
	Node     string        `json:"node"`
	Type     string        `json:"type"`
	Status   string        `json:"status"`
	Attempts int           `json:"attempts"`
	Started  int64         `json:"started"`
	Micros   int64         `json:"us"`
	Cached   bool          `json:"cached"`
	Error    *engine.Error `json:"error"`
	Event    int64         `json:"event" doc:"The number of the event that last started or resumed the node; 0 if none did"`
	Inputs   []shownValue  `json:"inputs"`
	Outputs  []shownValue  `json:"outputs"`
	Metadata []shownValue  `json:"metadata"`
	State    []shownValue  `json:"state" doc:"What the node wrote to the state"`
	Effects  []shownEffect `json:"effects"`
	Messages []shownValue  `json:"messages" doc:"What the node added to contexts; the name is the context"`
	Waits    []shownWait   `json:"waits"`
	Partial  []string      `json:"partial" doc:"Answers that were interrupted"`
}

// shownValue is a value, or its beginning.
type shownValue struct {
	Name     string          `json:"name"`
	Size     int             `json:"size" doc:"Bytes of the value as JSON"`
	Value    json.RawMessage `json:"value" doc:"null if the value is larger than 16 KiB"`
	Excerpt  string          `json:"excerpt" doc:"The beginning of a value that is larger; GET .../value returns all of it"`
	Template bool            `json:"template,omitempty" doc:"The value is the template of the flow: what it gave is not known"`
	Computed bool            `json:"computed,omitempty" doc:"A template or expression gave the value: it was evaluated again with what the journal has"`
	Deleted  bool            `json:"deleted,omitempty" doc:"The key was deleted from the state"`
}

type shownEffect struct {
	Key    string        `json:"key"`
	Result shownValue    `json:"result"`
	Error  *engine.Error `json:"error"`
	Usage  app.Usage     `json:"usage"`
	Micros int64         `json:"us"`
	Digest string        `json:"digest"`
}

type shownWait struct {
	app.Interrupt
	Answered bool       `json:"answered"`
	Answer   shownValue `json:"answer"`
	By       string     `json:"by"`
}

const (
	// maxShown bounds a value that is shown in full, in bytes of JSON.
	maxShown = 16 << 10
	// maxExcerpt bounds the beginning of a larger one.
	maxExcerpt = 2 << 10
)

func (s *Server) registerNode() {
	op := func(id, path, summary string) operation {
		return operation{id: id, method: http.MethodGet, path: "/v1/runs/{run}/" + path, scope: Read, summary: summary, tags: []string{"history"}}
	}
	register(s, op("getNode", "node", "Get what a node was given and did; large values as their beginning"), getNode)
}

// nodeOf reads a node of a run of the caller.
func (c *call) nodeOf(in *NodeQuery) (*app.NodeDetails, *history.NodeRecord, error) {
	v, err := c.inspect(in.Run, in.At)
	if err != nil {
		return nil, nil, err
	}
	n := history.NewTimeline(v).Nodes[in.Node]
	if n == nil {
		return nil, nil, notFound("node", in.Node)
	}
	inputs, err := history.NodeInputs(c, c.app, in.Run, n)
	if err != nil {
		return nil, nil, err
	}
	added, err := app.AddedMessages(n.Contexts)
	if err != nil {
		return nil, nil, err
	}
	return app.NodeDetailsOf(n, inputs, added), n, nil
}

func getNode(c *call, in *NodeQuery) (*body[nodeDetails], error) {
	d, n, err := c.nodeOf(in)
	if err != nil {
		return nil, err
	}
	out := nodeDetails{
		Node: d.Node, Type: d.Type, Status: d.Status, Attempts: d.Attempts, Started: d.Started, Micros: d.Micros, Cached: d.Cached, Error: d.Error,
		Event: n.Entered, Inputs: shownInputs(d), Outputs: shownValues(d.Outputs), Metadata: shownValues(d.Metadata), State: []shownValue{},
		Effects: []shownEffect{}, Messages: []shownValue{}, Waits: []shownWait{}, Partial: append([]string{}, d.Partial...),
	}
	for _, x := range n.State {
		s := shown(x.Key, app.JSONOf(x.Value))
		s.Deleted = x.Delete
		out.State = append(out.State, s)
	}
	for _, e := range d.Effects {
		out.Effects = append(out.Effects, shownEffect{e.Key, shown(e.Key, app.JSONOf(e.Result)), e.Error, e.Usage, e.Micros, e.Digest})
	}
	for i := range d.Messages {
		out.Messages = append(out.Messages, shown(d.Messages[i].Context, app.JSONOf(d.Messages[i].Message)))
	}
	for i := range d.Waits {
		w := &d.Waits[i]
		out.Waits = append(out.Waits, shownWait{w.Interrupt, w.Answered, shown(w.ID, app.JSONOf(w.Answer)), w.By})
	}
	return bodyOf(out), nil
}

// shownInputs returns the inputs with a recorded value, those that are computed from the record, and the templates of
// the others.
func shownInputs(d *app.NodeDetails) []shownValue {
	out := shownValues(d.Inputs)
	for _, x := range shownValues(d.Computed) {
		x.Computed = true
		out = append(out, x)
	}
	for _, t := range d.Templates {
		if _, known := d.Computed.Get(t.Name); !known {
			x := shown(t.Name, app.JSONOf(t.Value))
			x.Template = true
			out = append(out, x)
		}
	}
	return out
}

func shownValues(list engine.Values) []shownValue {
	out := make([]shownValue, 0, len(list))
	for _, x := range list {
		out = append(out, shown(x.Name, app.JSONOf(x.Value)))
	}
	return out
}

// shown returns a value as JSON, or its beginning. That of a text is text.
func shown(name string, data []byte) shownValue { return shownWithin(name, data, maxShown) }

// shownWithin returns a value of at most bound bytes, or its beginning.
func shownWithin(name string, data []byte, bound int) shownValue {
	s := shownValue{Name: name, Size: len(data), Value: data}
	if len(data) <= bound {
		return s
	}
	s.Value = json.RawMessage("null")
	var text string
	if data[0] == '"' && json.Unmarshal(data, &text) == nil {
		s.Excerpt = excerpt.Bytes(text, maxExcerpt)
		return s
	}
	s.Excerpt = excerpt.Bytes(strings.ToValidUTF8(string(data[:min(len(data), 2*maxExcerpt)]), "?"), maxExcerpt)
	return s
}

func valueNamed(d *app.NodeDetails, n *history.NodeRecord, part, name string) (engine.Value, bool) {
	switch part {
	case "inputs":
		return slices.Concat(d.Inputs, d.Computed, d.Templates).Get(name)
	case "outputs":
		return d.Outputs.Get(name)
	case "metadata":
		return d.Metadata.Get(name)
	case "state":
		for _, x := range n.State {
			if x.Key == name {
				return x.Value, true
			}
		}
		return nil, false
	case "effects":
		for _, e := range d.Effects {
			if e.Key == name {
				return e.Result, true
			}
		}
		return nil, false
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 {
		return nil, false
	}
	if part == "messages" && i < len(d.Messages) {
		return d.Messages[i].Message, true
	}
	if part == "waits" && i < len(d.Waits) {
		return d.Waits[i].Answer, true
	}
	return nil, false
}
