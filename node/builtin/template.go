package builtin

import (
	"encoding/json"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
)

// templateNode renders a template.
type templateNode struct {
	Text   template `json:"text"`
	Format string   `json:"format"`
}

func templateType() node.Type {
	return define[templateNode](&flow.TypeSpec{
		Name:     "template",
		Category: "data",
		Summary:  "Fills in a text or a structure with values.",
		Doc: `The template reads the input ports of the node, which may have any names, as ` + "`inputs.NAME`" + `;
it can also read ` + "`state.*`" + ` and ` + "`run.*`" + `.

| setting | what |
|---|---|
| ` + "`text`" + ` | the template: a text, or with ` + "`format: json`" + ` also an object or list |
| ` + "`format`" + ` | ` + "`text`" + ` (default) or ` + "`json`" + ` |

With ` + "`format: text`" + ` the result is on the port ` + "`text`" + `. Values that are not text are written as
JSON.

With ` + "`format: json`" + ` the result is also on the port ` + "`value`" + `, with its type. A text must be
JSON after the values are inserted, or the node fails with ` + "`json_invalid`" + `. Quotes in an inserted
value would break it, so write the structure itself if you can: in
` + "`text: {name: \"{{ inputs.name }}\"}`" + ` every value keeps its type and nothing needs quoting.

Inserted values are never read as templates again.`,
		Ports: flow.Ports{
			Out:   []flow.Port{{Name: "text", Type: flow.TypeText, Description: "The result as text."}},
			AnyIn: true,
		},
		PortsFor: func(with map[string]any) flow.Ports {
			p := flow.Ports{
				Out:   []flow.Port{{Name: "text", Type: flow.TypeText, Description: "The result as text."}},
				AnyIn: true,
			}
			if with["format"] == "json" {
				p.Out = append(p.Out, flow.Port{Name: "value", Type: flow.TypeAny, Description: "The result with its type."})
			}
			return p
		},
		Settings: objectSchema(map[string]any{
			"text":   templateSchema("", "The template."),
			"format": choiceSchema("What the result is.", "text", "json"),
		}, "text"),
		Check: func(with map[string]any) []flow.Problem {
			if _, isText := with["text"].(string); !isText && with["text"] != nil && with["format"] != "json" {
				return []flow.Problem{settingProblem("text", "text is a structure; that needs format: json")}
			}
			return nil
		},
		Pure:     true,
		Inline:   true,
		Examples: templateExamples(),
	})
}

func templateExamples() []flow.Example {
	return []flow.Example{{
		Name: "a letter",
		Flow: `
weir: 1
name: letter
inputs:
  name: {type: text, required: true}
nodes:
  letter:
    type: template
    in: {name: "{{ run.inputs.name }}", cups: 3}
    with: {text: "Dear {{ inputs.name }}, you owe me {{ inputs.cups }} cups."}
outputs: {letter: "{{ letter.text }}"}
`,
		Inputs:  map[string]any{"name": "Ada"},
		Outputs: map[string]any{"letter": "Dear Ada, you owe me 3 cups."},
	}, {
		Name: "a structure",
		Flow: `
weir: 1
name: structure
inputs:
  name: {type: text, required: true}
nodes:
  record:
    type: template
    in: {name: "{{ run.inputs.name }}"}
    with:
      format: json
      text: {who: "{{ inputs.name }}", tags: [new]}
outputs: {record: "{{ record.value }}"}
`,
		Inputs:  map[string]any{"name": `Ada "the first"`},
		Outputs: map[string]any{"record": map[string]any{"who": `Ada "the first"`, "tags": []any{"new"}}},
	}}
}

// Run renders the template.
func (n *templateNode) Run(ctx *node.Ctx) error {
	if n.Format != "json" {
		text, err := n.Text.text(ctx, "text")
		if err != nil {
			return err
		}
		ctx.Output("text", text)
		return nil
	}
	v, err := n.Text.value(ctx, "text")
	if err != nil {
		return err
	}
	if text, ok := v.(string); ok {
		if v, err = parseJSON(text); err != nil {
			return withHint(permanentError(CodeJSON, "text: the result is not JSON: %v", err),
				"write text as an object or list instead of a text")
		}
	}
	ctx.Output("text", jsonText(v))
	ctx.Output("value", v)
	return nil
}

// parseJSON reads a text that is one JSON value and nothing else.
func parseJSON(text string) (engine.Value, error) {
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	return engine.ParseValue(raw)
}

// jsonText writes a value as JSON.
func jsonText(v engine.Value) string {
	b, err := engine.AppendValue(nil, v)
	if err != nil {
		return ""
	}
	return string(b)
}
