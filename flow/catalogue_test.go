package flow_test

import (
	"fmt"
	"slices"

	"github.com/weir-run/weir/flow"
)

// catalogue is a small explicit list of node types that has every feature a
// spec can have.
type catalogue []*flow.TypeSpec

// Lookup implements flow.Catalogue.
func (c catalogue) Lookup(name string) *flow.TypeSpec {
	for _, s := range c {
		if s.Name == name || slices.Contains(s.Aliases, name) {
			return s
		}
	}
	return nil
}

// Specs implements flow.Catalogue.
func (c catalogue) Specs() []*flow.TypeSpec { return c }

// Settings implements flow.Catalogue.
func (c catalogue) Settings() *flow.SettingsSchemas { return &flow.SettingsSchemas{} }

type object = map[string]any

func in(name string, t flow.PortType) flow.Port  { return flow.Port{Name: name, Type: t} }
func out(name string, t flow.PortType) flow.Port { return flow.Port{Name: name, Type: t} }
func required(name string, t flow.PortType) flow.Port {
	return flow.Port{Name: name, Type: t, Required: true}
}

func settings(properties object, required ...string) object {
	return object{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}

func testCatalogue() catalogue {
	return slices.Concat(contextTypes(), controlTypes(), dataTypes(), compositeTypes(), flowTypes())
}

// flowTypes run other flows: their inputs and outputs are ports.
func flowTypes() catalogue {
	text := object{"type": "string", "minLength": 1}
	return catalogue{{
		Name: "flow", Aliases: []string{"workflow"}, Version: 1, Context: flow.ContextWrite,
		Settings: settings(object{"flow": text, "lastMessage": text}, "flow"),
		Uses: &flow.UseSpec{
			PortsFor: func(with object, child *flow.Flow) flow.Ports {
				p := flow.Ports{In: []flow.Port{in("context", flow.TypeContext)}}
				for _, i := range child.Inputs {
					p.In = append(p.In, flow.Port{Name: i.Name, Type: i.Type, Required: i.Required && with["lastMessage"] != i.Name})
				}
				for _, o := range child.Outputs {
					p.Out = append(p.Out, out(o.Name, child.OutputType(o.Name)))
				}
				return p
			},
			Check: func(with object, child *flow.Flow) []flow.Problem {
				for _, i := range child.Inputs {
					if with["lastMessage"] == nil || with["lastMessage"] == i.Name {
						return nil
					}
				}
				if with["lastMessage"] == nil {
					return nil
				}
				return []flow.Problem{{Code: flow.CodeInvalidSetting, Setting: "lastMessage", Message: "the flow has no such input"}}
			},
		},
	}, {
		Name: "steps", Version: 1,
		Settings: settings(object{"steps": object{"type": "array", "items": object{"type": "object", "properties": object{"flow": text}}}}),
		Flows: func(with object) (refs []flow.FlowRef) {
			list, _ := with["steps"].([]any)
			for i, e := range list {
				step, _ := e.(object)
				ref, _ := step["flow"].(string)
				at := fmt.Sprintf("steps.%d.flow", i)
				refs = append(refs, flow.FlowRef{Setting: at, Ref: ref, Check: func(child *flow.Flow) []flow.Problem {
					if len(child.Inputs) == 0 {
						return nil
					}
					return []flow.Problem{{Code: flow.CodeInvalidSetting, Setting: at, Message: "the flow has inputs"}}
				}})
			}
			return refs
		},
	}}
}

func contextTypes() catalogue {
	context := out("context", flow.TypeContext)
	return catalogue{
		{Name: "refuse", Version: 1, OnlyFails: true, Settings: settings(nil)},
		{Name: "start", Aliases: []string{"defaultContextStart"}, Version: 1, Ports: flow.Ports{Out: []flow.Port{context}}, Settings: settings(nil)},
		{
			Name: "newContext", Version: 1, NewContext: true,
			Ports:    flow.Ports{Out: []flow.Port{context}},
			Settings: settings(object{"system": object{"type": "string", "x-weir": "template"}}),
		},
		{
			Name: "userInput", Version: 1, Context: flow.ContextWrite,
			Ports: flow.Ports{In: []flow.Port{in("context", flow.TypeContext)}, Out: []flow.Port{out("text", flow.TypeText), out("value", flow.TypeAny), context}},
			Settings: settings(object{
				"prompt":  object{"type": "string", "x-weir": "template"},
				"schema":  object{"type": "object"},
				"history": object{"type": "boolean"},
			}),
		},
		{
			Name: "llmRequest", Aliases: []string{"chat"}, Version: 1, Context: flow.ContextWrite,
			ActsOutside: func(map[string]any) bool { return false },
			PureFor:     func(with object) bool { return with["skipHistory"] == true },
			Ports: flow.Ports{
				In: []flow.Port{in("message", flow.TypeMessage), in("tools", flow.TypeTools), in("context", flow.TypeContext)},
				Out: []flow.Port{
					out("text", flow.TypeText), out("reasoning", flow.TypeText), out("usage", flow.TypeObject),
					out("message", flow.TypeMessage), context,
				},
			},
			Settings: settings(object{
				"model":       object{"type": "string"},
				"system":      object{"type": "string", "x-weir": "template"},
				"skipHistory": object{"type": "boolean"},
				"maxOutput":   object{"type": "integer", "minimum": 1},
				"reasoning":   object{"type": "string", "enum": []any{"low", "medium", "high"}},
			}),
		},
		{
			Name: "tools", Version: 1, Pure: true,
			Ports:    flow.Ports{Out: []flow.Port{out("tools", flow.TypeTools), out("toolNames", flow.TypeList)}},
			Settings: settings(object{"tools": object{"anyOf": []any{object{"const": "auto"}, object{"type": "array", "items": object{"type": "string"}}}}}),
		},
	}
}

func branchesOf(with object, key string) []flow.Port {
	var ports []flow.Port
	list, _ := with[key].([]any)
	for _, b := range list {
		ports = append(ports, flow.Port{Name: fmt.Sprint(b), Type: flow.TypeBool, Branch: true})
	}
	return ports
}

func controlTypes() catalogue {
	any1 := []flow.Port{out("value", flow.TypeAny)}
	return catalogue{
		{
			Name: "decision", Version: 1, Pure: true, Inline: true,
			Ports: flow.Ports{AnyIn: true},
			PortsFor: func(with object) flow.Ports {
				return flow.Ports{AnyIn: true, Out: append(branchesOf(with, "branches"), out("result", flow.TypeText))}
			},
			Settings: settings(object{
				"expr":     object{"type": "string", "x-weir": "expression"},
				"branches": object{"type": "array", "minItems": 1, "items": object{"type": "string"}},
			}, "expr", "branches"),
			Check: func(with object) []flow.Problem {
				list, _ := with["branches"].([]any)
				var ps []flow.Problem
				for i, b := range list {
					if b == "result" || b == "error" {
						ps = append(ps, flow.Problem{Code: flow.CodeInvalidSetting, Message: fmt.Sprintf("a branch cannot be called %v", b), Setting: fmt.Sprintf("branches.%d", i)})
					}
				}
				return ps
			},
		},
		{
			Name: "merge", Version: 1, Pure: true, PassThrough: true,
			Ports:    flow.Ports{In: []flow.Port{{Name: "value", Type: flow.TypeAny, Required: true, Exclusive: true}}, Out: any1},
			Settings: settings(nil),
		},
		{
			Name: "portalOut", Version: 1, Portal: "out", PassThrough: true,
			Ports:    flow.Ports{In: []flow.Port{required("value", flow.TypeAny)}, Out: any1},
			Settings: settings(object{"name": object{"type": "string", "minLength": 1}}, "name"),
		},
		{
			Name: "portalIn", Version: 1, Portal: "in", PassThrough: true,
			Ports:    flow.Ports{In: []flow.Port{required("value", flow.TypeAny)}, Out: any1},
			Settings: settings(object{"name": object{"type": "string", "minLength": 1}}, "name"),
		},
		{
			Name: "wait", Version: 1,
			Ports:    flow.Ports{In: []flow.Port{in("seconds", flow.TypeNumber)}},
			Settings: settings(object{"seconds": object{"type": "number", "minimum": 0, "x-weir": "template"}}),
		},
	}
}

func dataTypes() catalogue {
	return catalogue{
		{
			Name: "template", Version: 1, Pure: true, Inline: true,
			Ports:    flow.Ports{AnyIn: true, Out: []flow.Port{out("text", flow.TypeText)}},
			Settings: settings(object{"text": object{"type": "string", "x-weir": "template"}}, "text"),
		},
		{
			Name: "strict", Version: 1, Pure: true, Inline: true, AsksModels: func(map[string]any) bool { return false },
			Ports:    flow.Ports{AnyIn: true, Out: []flow.Port{out("text", flow.TypeText)}},
			Settings: settings(object{"text": object{"type": "string", "x-weir": "template"}}, "text"),
			Reads:    func(map[string]any) ([]string, bool) { return nil, false },
		},
		{
			Name: "transform", Version: 1, Pure: true, Inline: true,
			Ports:    flow.Ports{AnyIn: true, Out: []flow.Port{out("value", flow.TypeAny)}},
			Settings: settings(object{"expr": object{"type": "string", "x-weir": "expression"}}, "expr"),
		},
		{
			Name: "action", Version: 1,
			Ports: flow.Ports{AnyIn: true, AnyOut: true},
			Settings: settings(object{
				"language": object{"type": "string", "enum": []any{"python", "starlark"}},
				"code":     object{"type": "string"},
				"writes":   object{"type": "array", "items": object{"type": "string"}},
			}, "code"),
			Writes: func(with object) []string {
				var keys []string
				list, _ := with["writes"].([]any)
				for _, k := range list {
					keys = append(keys, fmt.Sprint(k))
				}
				return keys
			},
		},
		{
			Name: "collect", Version: 1, Pure: true,
			Ports:    flow.Ports{In: []flow.Port{{Name: "parts", Type: flow.TypeText, Many: true, Required: true}}, Out: []flow.Port{out("list", flow.TypeList), out("text", flow.TypeText)}},
			Settings: settings(nil),
		},
		{
			Name: "httpRequest", Version: 1,
			Ports: flow.Ports{In: []flow.Port{in("body", flow.TypeAny)}, Out: []flow.Port{out("status", flow.TypeNumber), out("body", flow.TypeAny)}},
			Settings: settings(object{
				"url":     object{"type": "string", "x-weir": "template"},
				"method":  object{"type": "string", "enum": []any{"GET", "POST", "PUT", "DELETE"}},
				"headers": object{"type": "object", "additionalProperties": object{"type": "string", "x-weir": "secret"}},
			}, "url"),
		},
	}
}

func compositeTypes() catalogue {
	return catalogue{
		{
			Name: "loop", Version: 1, Composite: true, BodyInputs: []string{"index"},
			Ports:    flow.Ports{AnyIn: true, AnyOut: true},
			Settings: settings(object{"until": object{"type": "string", "x-weir": "expression"}, "max": object{"type": "integer", "minimum": 1}, "body": object{"type": "object"}}, "body", "max"),
		},
		{
			Name: "forEach", Version: 1, Composite: true,
			Ports:    flow.Ports{In: []flow.Port{required("items", flow.TypeList)}, AnyIn: true, Out: []flow.Port{out("results", flow.TypeList)}},
			Settings: settings(object{"concurrency": object{"type": "integer", "minimum": 1}}),
		},
		{
			Name: "race", Version: 1, Composite: true, Branches: true, BodyInputs: []string{},
			Ports:    flow.Ports{AnyIn: true, AnyOut: true, Out: []flow.Port{out("winner", flow.TypeText)}},
			Settings: settings(object{"allowEffects": object{"type": "boolean"}, "branches": object{"type": "object"}}, "branches"),
		},
	}
}
