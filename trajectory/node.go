package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine"
)

// Node is one node of a graph. What a recorder hands out is a copy.
type Node struct {
	ID   ID   `json:"id"`
	Type Type `json:"type"`
	// Round and Sub say whose it is.
	Round int `json:"round"`
	Sub   int `json:"sub"`
	// Name is what it is called, a tool's or a file's name; may be empty.
	Name string `json:"name"`
	// Description says what it is, for a person or a model; may be empty.
	Description string     `json:"description"`
	Attributes  Attributes `json:"attributes"`
	// By is who made it, and Created when (UTC).
	By      Attribution `json:"attribution"`
	Created time.Time   `json:"created"`
	// Version counts from 1; History holds what each earlier version had in
	// place of what the next one changed.
	Version int     `json:"version"`
	History History `json:"history"`
}

// Attribution says who made or changed a node. All of it may be empty.
type Attribution struct {
	Run   string `json:"run,omitempty"`
	Path  string `json:"path,omitempty"`  // of the flow's node
	Agent string `json:"agent,omitempty"` // the sub-agent's name
	User  string `json:"user,omitempty"`
}

// Attributes are named values of a node, plain JSON. Whole numbers are int64.
type Attributes map[string]any

// The attributes that messages fill.
const (
	AttrKind           = "kind"            // of an Action: answer, call or input
	AttrText           = "text"            // what was said
	AttrReasoning      = "reasoning"       // the model's own
	AttrMessageID      = "message"         // id of the message
	AttrPosition       = "position"        // of the message in its round, from 0
	AttrToolName       = "tool"            // of a call
	AttrArguments      = "arguments"       // of a call, JSON as the model wrote it
	AttrCallID         = "call_id"         // as the model's provider made it
	AttrResult         = "result"          // what a call returned
	AttrResultID       = "result_message"  // id of the message with the result
	AttrResultPosition = "result_position" // its position
	AttrFailed         = "failed"          // true: the result is an error
)

// The kinds of Action that messages make.
const (
	KindAnswer = "answer" // a model's answer that calls tools
	KindCall   = "call"   // a call of one tool
	KindInput  = "input"  // what a person said after the round's query
)

// MarshalJSON writes an object with sorted keys; nil is {}.
func (a Attributes) MarshalJSON() ([]byte, error) {
	if a == nil {
		return []byte("{}"), nil
	}
	return engine.AppendValue(nil, map[string]any(a))
}

// UnmarshalJSON reads an object; null is no attributes.
func (a *Attributes) UnmarshalJSON(data []byte) error {
	v, err := engine.ParseValue(data)
	if err != nil {
		return err
	}
	switch t := v.(type) {
	case nil:
		*a = Attributes{}
	case map[string]any:
		*a = t
	default:
		return errors.New("attributes are an object")
	}
	return nil
}

// Change is what one edit replaced.
type Change struct {
	// At is when, and By who did it.
	At time.Time   `json:"at"`
	By Attribution `json:"by"`
	// Old holds the values that were replaced or removed, and Added names what
	// was not there before. "name" and "description" stand for the node's own.
	Old   Attributes `json:"old"`
	Added []string   `json:"added,omitempty"`
}

// History holds for each version but the newest the change that ended it.
type History map[int]Change

// MarshalJSON writes an object whose keys are the versions in order; nil is {}.
func (h History) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, v := range slices.Sorted(maps.Keys(h)) {
		if i > 0 {
			b.WriteByte(',')
		}
		j, err := json.Marshal(h[v])
		if err != nil {
			return nil, err
		}
		b.WriteString(`"` + strconv.Itoa(v) + `":`)
		b.Write(j)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Edit is a change to a node. What is not set stays.
type Edit struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	// Set gives attributes values, and Delete removes attributes; null is a
	// value.
	Set    map[string]any `json:"set,omitempty"`
	Delete []string       `json:"delete,omitempty"`
}

// ErrReserved: an attribute may not have the name of a field.
var ErrReserved = errors.New("is not a name for an attribute")

// copyAttributes checks and copies values from a caller.
func copyAttributes(values map[string]any) (Attributes, error) {
	out := make(Attributes, len(values))
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if k == "" || k == "name" || k == "description" {
			return nil, fmt.Errorf("%q %w", k, ErrReserved)
		}
		v, err := normalizeJSON(values[k])
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", k, err)
		}
		out[k] = v
	}
	return out, nil
}

// normalizeJSON turns v into what reading its JSON gives, so that a stored node equals
// the live one.
func normalizeJSON(v any) (any, error) {
	n, err := engine.Normalize(v)
	if err != nil {
		return nil, err
	}
	switch n.(type) {
	case nil, bool, int64, float64, string:
		return n, nil
	}
	b, err := engine.AppendValue(nil, n)
	if err != nil {
		return nil, err
	}
	return engine.ParseValue(b)
}

// applyEdit returns the node with the edit done and the old values kept, or n
// itself where nothing differs.
func applyEdit(n Node, e Edit, at time.Time, by Attribution) (Node, error) {
	set, err := copyAttributes(e.Set)
	if err != nil {
		return n, err
	}
	c := Change{At: at, By: by, Old: Attributes{}}
	out := n
	applyField(&c, "name", &out.Name, e.Name)
	applyField(&c, "description", &out.Description, e.Description)
	out.Attributes = maps.Clone(n.Attributes)
	for _, k := range slices.Sorted(maps.Keys(set)) {
		old, had := n.Attributes[k]
		switch {
		case !had:
			c.Added = append(c.Added, k)
		case reflect.DeepEqual(old, set[k]):
			continue
		default:
			c.Old[k] = old
		}
		out.Attributes[k] = set[k]
	}
	for _, k := range e.Delete {
		if _, both := set[k]; both {
			return n, fmt.Errorf("attribute %s is set and deleted in one edit", k)
		}
		if old, had := out.Attributes[k]; had {
			c.Old[k] = old
			delete(out.Attributes, k)
		}
	}
	if len(c.Old) == 0 && len(c.Added) == 0 {
		return n, nil
	}
	out.History = maps.Clone(n.History)
	out.History[n.Version] = c
	out.Version++
	return out, nil
}

func applyField(c *Change, name string, to, from *string) {
	if from == nil || *from == *to {
		return
	}
	c.Old[name] = *to
	*to = *from
}

// AtVersion returns the node as it was in an earlier version, and whether there was
// one.
func (n Node) AtVersion(version int) (Node, bool) {
	if version < 1 || version > n.Version {
		return Node{}, false
	}
	n.Attributes, n.History = maps.Clone(n.Attributes), maps.Clone(n.History)
	for v := n.Version - 1; v >= version; v-- {
		c := n.History[v]
		for _, k := range c.Added {
			delete(n.Attributes, k)
		}
		for k, old := range c.Old {
			switch k {
			case "name":
				n.Name, _ = old.(string)
			case "description":
				n.Description, _ = old.(string)
			default:
				n.Attributes[k] = old
			}
		}
		delete(n.History, v)
	}
	n.Version = version
	return n, true
}

// clone returns a node that shares no map or list with n.
func (n Node) clone() Node {
	n.Attributes, _ = engine.Copy(map[string]any(n.Attributes)).(map[string]any)
	h := make(History, len(n.History))
	for v, c := range n.History {
		c.Old, _ = engine.Copy(map[string]any(c.Old)).(map[string]any)
		c.Added = slices.Clone(c.Added)
		h[v] = c
	}
	n.History = h
	return n
}
