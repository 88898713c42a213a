package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

// effectWorld is the world that ops have effects in. It records everything that
// is asked for, and checks it against what the journal holds.
type effectWorld interface {
	asked(path string, attempt int, key string) error
}

// opType is the node type of random flows: it does what its settings say.
type opType struct {
	spec  flow.TypeSpec
	world effectWorld
}

func newOpType(w effectWorld) *opType {
	any1 := func(name string) flow.Port { return flow.Port{Name: name, Type: flow.TypeAny} }
	o := &opType{world: w}
	o.spec = flow.TypeSpec{
		Name: "op", Version: 1, Category: "test", Summary: "Does what it is told.",
		Settings: opSchema(),
		PortsFor: func(with map[string]any) flow.Ports {
			s := opSettings(with)
			p := flow.Ports{AnyIn: true, Out: []flow.Port{any1("value")}}
			for _, b := range s.Branches {
				p.Out = append(p.Out, flow.Port{Name: b, Type: flow.TypeAny, Branch: true})
			}
			if s.Need != "" {
				p.In = append(p.In, flow.Port{Name: s.Need, Type: flow.TypeAny, Required: true})
			}
			if s.Lazy {
				p.In = append(p.In, flow.Port{Name: "pull", Type: flow.TypeAny, Lazy: true})
			}
			if s.Say {
				c := flow.Port{Name: "context", Type: flow.TypeContext}
				p.In, p.Out = append(p.In, c), append(p.Out, c)
			}
			return p
		},
		ContextFor: func(with map[string]any) flow.ContextUse {
			if opSettings(with).Say {
				return flow.ContextWrite
			}
			return flow.ContextNone
		},
	}
	return o
}

// directOp is an op that may run before its start is durable.
type directOp struct{ opType }

func newDirectOp(w effectWorld) *directOp {
	o := &directOp{*newOpType(w)}
	o.spec.Name, o.spec.Pure, o.spec.Inline = "directOp", true, true
	return o
}

// opSchema lists the settings and says nothing of their types.
func opSchema() map[string]any {
	props := map[string]any{}
	for f := range reflect.TypeFor[simOp]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		props[name] = map[string]any{}
	}
	return map[string]any{"type": "object", "properties": props}
}

func opSettings(with map[string]any) (s simOp) {
	b, err := json.Marshal(with)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		panic(err)
	}
	return s
}

// Spec implements node.Type.
func (o *opType) Spec() *flow.TypeSpec { return &o.spec }

// Prepare implements node.Type.
func (o *opType) Prepare(with map[string]any) (node.Node, error) {
	return &opNode{opSettings(with), o.world}, nil
}

type opNode struct {
	simOp
	world effectWorld
}

var errOp = &engine.Error{Code: "op_failed", Message: "as told"}

// Run does everything an op may do, in one order.
func (o *opNode) Run(c *node.Ctx) error {
	in := c.Inputs()
	if o.Pulls {
		v, ok, err := c.Pull("pull")
		if err != nil {
			return err
		}
		if ok {
			in["pull"] = v
		}
	}
	if o.Ask {
		v, _, err := c.Wait("q", engine.Interrupt{Kind: engine.AwaitInput, Prompt: "?"})
		if err != nil {
			return err
		}
		in["answer"] = v
	}
	if o.Sleep > 0 {
		due := c.Now().Add(time.Duration(o.Sleep) * time.Second).UnixMilli()
		if _, _, err := c.Wait("t", engine.Interrupt{Kind: engine.AwaitTimer, Due: due}); err != nil {
			return err
		}
	}
	for i := range o.Effects {
		if err := o.effect(c, i); err != nil {
			return err
		}
	}
	if c.Info().Attempt <= o.Fails {
		e := *errOp
		e.Permanent = o.Permanent
		return &e
	}
	return o.finish(c, in)
}

// effect asks the outside for something; the request holds the time, which must
// be the same when it is asked for again.
func (o *opNode) effect(c *node.Ctx, i int) error {
	unknown := node.UnknownRetry
	if o.Announce {
		unknown = node.UnknownAsk
	}
	attempt := c.Info().Attempt
	v, err := c.Do(node.Effect{
		Name: "ask", Unknown: unknown, Request: []any{int64(i), c.Info().Path},
		Do: func(_ context.Context, key string) (node.Outcome, error) {
			if err := o.world.asked(c.Info().Path, attempt, key); err != nil {
				return node.Outcome{}, err
			}
			c.Emit(llm.Chunk{}) // others continue while the effect is in flight
			return node.Outcome{Value: int64(i), Usage: &engine.Usage{Calls: 1}}, nil
		},
	})
	if err != nil {
		return err
	}
	if v != int64(i) {
		return fmt.Errorf("effect %d returned %v", i, v)
	}
	return nil
}

func (o *opNode) finish(c *node.Ctx, in map[string]any) error {
	path := c.Info().Path
	value := opValue(path, in)
	if o.Write {
		h := int64(len(path))
		if err := c.State().Update(map[string]any{"sum": h, "max": h, "log": path, "map": map[string]any{path: h}}); err != nil {
			return err
		}
	}
	if o.Own {
		if err := c.State().Set("own:"+path, value); err != nil {
			return err
		}
	}
	if o.Say {
		m, err := c.Context()
		if err != nil {
			return err
		}
		if _, err := m.AddAll([]convo.Message{
			{ID: path + ".u", Role: convo.User, Text: "turn " + path}, {ID: path + ".a", Role: convo.Assistant, Text: value},
		}); err != nil {
			return err
		}
		c.Output("context", engine.Handle{ID: m.ID()})
	}
	if !o.Quiet {
		c.Output("value", value)
	}
	if len(o.Branches) > 0 {
		c.Output(o.Branches[o.Pick], true)
	}
	return nil
}

// withoutAttempts takes from JSON, also in text, the attempt that an error is
// of: after a force it depends on what was cancelled when.
func withoutAttempts(s string) string { return attemptNumber.ReplaceAllString(s, "") }

var attemptNumber = regexp.MustCompile(`\\*"attempt\\*":\d+`)

// opValue stands for a computation over all that an op was given.
func opValue(path string, in map[string]any) string {
	delete(in, "context")
	b, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %s", path, withoutAttempts(string(b)))
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

// simProgram compiles a random flow; ok is false where it is not a valid one.
func simProgram(tb testing.TB, g *simGraph, w effectWorld) (p *Program, ok bool) {
	tb.Helper()
	types := append(builtin.Types(), newOpType(w), newDirectOp(w))
	c, err := node.NewCatalogue(types...)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := flow.Parse("random.json", g.file(), c)
	if err != nil {
		if _, invalid := errors.AsType[*flow.Invalid](err); !invalid {
			tb.Fatal(err)
		}
		return nil, false
	}
	if p, err = Prepare(f, c); err != nil {
		tb.Fatalf("%v\n%s", err, g.file())
	}
	return p, true
}
