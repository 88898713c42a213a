package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v4"

	"github.com/weir-run/weir/convo"
)

// readScript reads a file of ScriptFiles.
func readScript(path string) (fileScript, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read script %s: %w", path, err)
	}
	if len(doc.Content) == 1 && doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("read script %s: expected an object with the answers of each node, as in `answer: [Good morning.]`", path)
	}
	var nodes map[string]yaml.Node
	if err := doc.Decode(&nodes); err != nil {
		return nil, fmt.Errorf("read script %s: %w", path, err)
	}
	t := make(fileScript, len(nodes))
	for name, n := range nodes {
		if t[name], err = nodeTurns(&n); err != nil {
			return nil, fmt.Errorf("read script %s: %s: line %d: %w", path, name, n.Line, err)
		}
	}
	return t, nil
}

// nodeTurns parses the entry of a node: a text, turns, or a list of these, one for each iteration.
func nodeTurns(n *yaml.Node) ([][]convo.Message, error) {
	n = resolveAlias(n)
	if n.Kind != yaml.SequenceNode {
		turns, err := turnsOf(n)
		return [][]convo.Message{turns}, err
	}
	if len(n.Content) == 0 {
		return nil, errors.New("it says nothing")
	}
	var out [][]convo.Message
	for _, item := range n.Content {
		turns, err := turnsOf(resolveAlias(item))
		if err != nil {
			return nil, err
		}
		out = append(out, turns)
	}
	return out, nil
}

// turnsOf parses a text, or {turns: [...]}.
func turnsOf(n *yaml.Node) ([]convo.Message, error) {
	if n.Kind == yaml.ScalarNode {
		return []convo.Message{{Text: n.Value}}, nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Value != "turns" ||
		resolveAlias(n.Content[1]).Kind != yaml.SequenceNode || len(resolveAlias(n.Content[1]).Content) == 0 {
		return nil, errors.New("expected a text, {turns: [...]}, or a list of these")
	}
	var out []convo.Message
	for _, item := range resolveAlias(n.Content[1]).Content {
		m, err := turnOf(resolveAlias(item))
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// turnOf parses a text, or {text: ..., calls: [{tool: NAME, arguments: {...}}]}.
func turnOf(n *yaml.Node) (m convo.Message, err error) {
	if n.Kind == yaml.ScalarNode {
		m.Text = n.Value
		return m, nil
	}
	if n.Kind != yaml.MappingNode {
		return m, errors.New("a turn is a text, or {text: ..., calls: [{tool: NAME, arguments: {...}}]}")
	}
	for i := 0; i < len(n.Content); i += 2 {
		v := resolveAlias(n.Content[i+1])
		switch key := n.Content[i].Value; {
		case key == "text" && v.Kind == yaml.ScalarNode:
			m.Text = v.Value
		case key == "calls" && v.Kind == yaml.SequenceNode:
			for _, item := range v.Content {
				c, err := callOf(resolveAlias(item))
				if err != nil {
					return m, err
				}
				m.Calls = append(m.Calls, c)
			}
		default:
			return m, fmt.Errorf("a turn has text and calls, a list; not %q as it is here", key)
		}
	}
	if m.Text == "" && m.Calls == nil {
		return m, errors.New("a turn has text or calls")
	}
	return m, nil
}

// callOf parses a tool's name, or {tool: NAME, arguments: {...}}.
func callOf(n *yaml.Node) (convo.Call, error) {
	if n.Kind == yaml.ScalarNode && n.Value != "" {
		return convo.Call{Name: n.Value, Arguments: "{}"}, nil
	}
	var c struct {
		Tool      string         `yaml:"tool"`
		Arguments map[string]any `yaml:"arguments"`
	}
	if n.Kind != yaml.MappingNode || n.Decode(&c) != nil || c.Tool == "" {
		return convo.Call{}, errors.New("a call is the name of a tool, or {tool: NAME, arguments: {...}}")
	}
	if c.Arguments == nil {
		c.Arguments = map[string]any{}
	}
	b, err := json.Marshal(c.Arguments)
	if err != nil {
		return convo.Call{}, fmt.Errorf("the arguments of %s are not JSON: %w", c.Tool, err)
	}
	return convo.Call{Name: c.Tool, Arguments: string(b)}, nil
}

// resolveAlias returns the node that an alias refers to.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
