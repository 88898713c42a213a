// Package recalltool offers long-term memory to models: tools that identify the user
// and list what is known, and that read, write and forget items.
//
// The memory follows from the calling run and the options, never from the model's
// arguments. It must not know stores: it receives one.
package recalltool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/recall"
	"github.com/weir-run/weir/tool"
)

// The names of the tools.
const (
	Identify = "identifyUser"
	Read     = "memoryRead"
	Write    = "memoryWrite"
	Forget   = "memoryForget"
)

// DefaultMaxItems is how many items a user's memory holds where Options say
// nothing.
const DefaultMaxItems = 10_000

// Options say what the tools work with; the zero value is usable.
type Options struct {
	// Namespace keeps the memory of an application apart from that of others; ""
	// is the name of the flow that calls, so that each flow has its own.
	Namespace string
	// MaxItems is how many items a user may have in the namespace; 0 is
	// DefaultMaxItems, negative is no bound.
	MaxItems int
	// Approve says whether a person is asked before something is written or
	// forgotten; "" is never.
	Approve tool.Approval
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Tools makes the tools over a store: identifyUser and memoryRead, which change
// nothing, and memoryWrite and memoryForget, which are idempotent by the key of
// the call. The error says what about the options cannot be used.
func Tools(store recall.Store, o Options) ([]*tool.Tool, error) {
	if store == nil {
		return nil, errors.New("memory tools need a store")
	}
	if o.Namespace != "" {
		if err := (recall.Scope{Namespace: o.Namespace, User: "anybody"}).Check(); err != nil {
			return nil, fmt.Errorf("memory tools: %w", err)
		}
	}
	if o.MaxItems == 0 {
		o.MaxItems = DefaultMaxItems
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &memoryTools{store: store, options: o}
	var list []*tool.Tool
	for _, s := range []struct {
		name, says string
		parameters map[string]any
		call       func(context.Context, tool.Call, map[string]any) (string, error)
	}{
		{Identify, identifyDescription, nil, k.identify},
		{Read, readDescription, readParameters(), k.read},
		{Write, writeDescription, writeParameters(), k.write},
		{Forget, forgetDescription, forgetParameters(), k.forget},
	} {
		t, err := tool.FromSchema(s.name, s.says, s.parameters, s.call)
		if err != nil {
			return nil, err
		}
		t.Origin, t.Timeout, t.InOrder = "memory:"+o.Namespace, 30*time.Second, true
		if s.name == Identify || s.name == Read {
			t.ReadOnly = true
		} else {
			t.Idempotent, t.Approve = true, o.Approve
		}
		list = append(list, t)
	}
	if _, err := tool.NewSet(list...); err != nil { // the policy is checked here
		return nil, err
	}
	return list, nil
}

// memoryTools is what the tools share.
type memoryTools struct {
	store   recall.Store
	options Options
}

// errNoUser: there is nobody to remember anything of.
var errNoUser = errors.New("this run has no user and is part of no conversation, so that nothing is remembered and nothing can be")

// scope is whose memory a call may touch. It is the one place that says so, and
// looks at nothing that comes from a model or from the text of a conversation.
//
// Where a run has no user, memory is that of its session and ends with it:
// whatever somebody says of who they are opens no user's memory.
func (k *memoryTools) scope(by tool.Caller) (recall.Scope, error) {
	s := recall.Scope{Namespace: k.options.Namespace, User: by.User}
	if s.Namespace == "" {
		s.Namespace = by.Flow
	}
	if by.User == "" {
		s.Session = by.Session
	}
	if s.User == "" && s.Session == "" {
		return s, errNoUser
	}
	return s, s.Check()
}

// source says where something that is written came from.
func source(by tool.Caller) recall.Source {
	return recall.Source{Run: by.Run, Flow: by.Flow, Session: by.Session, Round: by.Round, By: "model"}
}

// decodeArguments reads arguments that fit their schema.
func decodeArguments(args map[string]any, v any) error {
	b, err := json.Marshal(args)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("the arguments do not fit the tool: %w", err)
	}
	return nil
}

// objectSchema is the schema of arguments.
func objectSchema(required []any, properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func kindNames() []any {
	var out []any
	for _, k := range recall.Kinds() {
		out = append(out, string(k))
	}
	return out
}
