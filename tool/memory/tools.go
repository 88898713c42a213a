// Package memorytool offers long-term memory to models: tools that identify the user
// and list what is known, and that read, write and forget items.
//
// The memory follows from the calling run and the options, never from the model's
// arguments. It must not know stores: it receives one.
package memorytool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/tool"
)

// Names of the tools.
const (
	Identify = "identifyUser"
	Read     = "memoryRead"
	Write    = "memoryWrite"
	Forget   = "memoryForget"
)

// DefaultMaxItems is the maximum number of items of a user's memory if Options has
// none.
const DefaultMaxItems = 10_000

// Options configure the tools; the zero value works.
type Options struct {
	// Namespace separates the memories of applications. "" is the name of the
	// calling flow, so that each flow has its own memory.
	Namespace string
	// MaxItems is the maximum number of items of a user in the namespace; 0 is
	// DefaultMaxItems, negative is no bound.
	MaxItems int
	// Approve says whether writing and forgetting need a person's approval; "" is
	// never.
	Approve tool.Approval
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Tools returns the tools over a store: identifyUser and memoryRead, which change
// nothing, and memoryWrite and memoryForget, which are idempotent by the key of the
// call. It fails on invalid options.
func Tools(store memory.Store, o Options) ([]*tool.Tool, error) {
	if store == nil {
		return nil, errors.New("memory tools need a store")
	}
	if o.Namespace != "" {
		if err := (memory.Scope{Namespace: o.Namespace, User: "anybody"}).Check(); err != nil {
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
	if _, err := tool.NewSet(list...); err != nil { // checks the approval policy
		return nil, err
	}
	return list, nil
}

// memoryTools holds what the tools share.
type memoryTools struct {
	store   memory.Store
	options Options
}

// errNoUser means that the calling run has neither user nor session.
var errNoUser = errors.New("this run has no user and no session, so it has no memory")

// scope returns the scope that a call may access. It is the only place that decides
// this, and it uses nothing that comes from a model or from the text of a conversation.
//
// The memory of a run without a user belongs to its session and is deleted with it. A
// claim about identity in the conversation gives no access to a user's memory.
func (k *memoryTools) scope(by tool.Caller) (memory.Scope, error) {
	s := memory.Scope{Namespace: k.options.Namespace, User: by.User}
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

// source returns the origin of what a call writes.
func source(by tool.Caller) memory.Source {
	s := memory.Source{Run: by.Run, Flow: by.Flow, Session: by.Session, Round: by.Round, By: "model"}
	if by.Node {
		s.By = "node"
	}
	return s
}

// decodeArguments decodes arguments that have been checked against their schema.
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

// objectSchema returns a schema of arguments.
func objectSchema(required []any, properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func kindNames() []any {
	var out []any
	for _, k := range memory.Kinds() {
		out = append(out, string(k))
	}
	return out
}
