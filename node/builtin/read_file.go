package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin/safefile"
	"github.com/weir-run/weir/trajectory"
)

// The bounds of a file.
const (
	defaultFileBytes = 1 << 20
	maxFileBytes     = 16 << 20
)

// readFileNode reads one file.
type readFileNode struct {
	Path         template `json:"path"`
	AllowOutside bool     `json:"allowOutside"`
	MaxBytes     int64    `json:"maxBytes"`
}

func readFileType() node.Type {
	return define[readFileNode](&flow.TypeSpec{
		Name:     "readFile",
		Category: "io",
		Summary:  "Reads a file in the folder of the flow.",
		Doc: `The file is read once, and its content is recorded: a run that is continued after a crash, replayed or forked has the same content, also if the file
has changed.

| setting | what |
|---|---|
| ` + "`path`" + ` | the path, relative to the folder of the flow's file; a template |
| ` + "`allowOutside`" + ` | the file may be outside that folder; only for a path without template (default false) |
| ` + "`maxBytes`" + ` | the maximum size (default 1 MiB, at most 16 MiB) |

| output | what |
|---|---|
| ` + "`text`" + ` or ` + "`base64`" + ` | the content as text, or in base64 if it is not UTF-8 |
| ` + "`value`" + ` | the content as a value, if the name ends with ` + "`.json`" + ` and the content is JSON |
| ` + "`name`" + ` | the name without folders |
| ` + "`size`" + ` | the size in bytes |
| ` + "`sha256`" + ` | the SHA-256 of the content, in hex |

**Which files.** Only regular files: devices, pipes and folders are refused. Without ` + "`allowOutside`" + ` the file must be inside the folder of the flow's file after
all symbolic links are resolved, also if the path comes from a person or model. A file that does not exist, is too large or may not be read fails
the node with ` + "`file_unreadable`" + `.`,
		Ports: flow.Ports{Out: []flow.Port{
			{Name: "text", Type: flow.TypeText, Description: "The content, where it is text."},
			{Name: "base64", Type: flow.TypeText, Description: "The content in base64, where it is not text."},
			{Name: "value", Type: flow.TypeAny, Description: "The content of a JSON file."},
			{Name: "name", Type: flow.TypeText, Description: "The name without folders."},
			{Name: "size", Type: flow.TypeNumber, Description: "The size in bytes."},
			{Name: "sha256", Type: flow.TypeText, Description: "The SHA-256 of the content."},
		}, AnyIn: true},
		Settings: objectSchema(map[string]any{
			"path":         templateSchema("string", "The path, relative to the folder of the flow's file."),
			"allowOutside": settingSchema("boolean", "The file may be outside the folder of the flow's file. Default: false."),
			"maxBytes": map[string]any{
				"type": "integer", "minimum": 1, "maximum": maxFileBytes, "description": "The maximum size in bytes. Default: 1048576.",
			},
		}, "path"),
		Check:       checkReadFile,
		ActsOutside: never,
		Examples: []flow.Example{{
			Name: "a file outside the folder",
			Flow: `
weir: 1
name: escape
inputs:
  path: {type: text, required: true}
nodes:
  read: {type: readFile, with: {path: "{{ run.inputs.path }}"}}
  note: {type: template, in: {problem: "{{ read.error }}"}, with: {text: "{{ inputs.problem.code }}"}}
outputs: {note: "{{ note.text }}"}
`,
			Inputs:  map[string]any{"path": "../../etc/passwd"},
			Outputs: map[string]any{"note": CodeFileUnreadable},
		}},
	})
}

func checkReadFile(with map[string]any) []flow.Problem {
	path, _ := with["path"].(string)
	literal := !strings.Contains(path, "{{")
	if allowed, _ := with["allowOutside"].(bool); allowed && !literal {
		return []flow.Problem{settingProblem("allowOutside", "allowOutside needs a path without template: the run may not choose a file outside the folder")}
	} else if !allowed && literal && path != "" && !filepath.IsLocal(path) {
		p := settingProblem("path", "the path %s is outside the folder of the flow's file", path)
		p.Hint = "set allowOutside: true to allow this file"
		return []flow.Problem{p}
	}
	return nil
}

func (n *readFileNode) setDefaults() {
	if n.MaxBytes == 0 {
		n.MaxBytes = defaultFileBytes
	}
}

// Run reads the file as an effect.
func (n *readFileNode) Run(ctx *node.Ctx) error {
	path, err := n.Path.text(ctx, "path")
	if err != nil {
		return err
	}
	v, err := ctx.Do(node.Effect{Name: "read", Request: path, ReadOnly: true, Uses: node.Use{Kind: node.UseFile, Name: path}, Do: func(context.Context, string) (node.Outcome, error) {
		content, err := safefile.Read(path, safefile.Options{Folder: ctx.Info().Folder, AllowOutside: n.AllowOutside, MaxBytes: n.MaxBytes})
		if err != nil {
			return node.Outcome{}, fileUnreadable(path, err)
		}
		sum := sha256.Sum256(content)
		o := map[string]any{"size": int64(len(content)), "sha256": hex.EncodeToString(sum[:])}
		if utf8.Valid(content) {
			o["text"] = string(content)
		} else {
			o["base64"] = base64.StdEncoding.EncodeToString(content)
		}
		return node.Outcome{Value: o}, nil
	}})
	if err != nil {
		return err
	}
	o, _ := v.(map[string]any)
	outputMembers(ctx, o, "text", "base64", "size", "sha256")
	name := filepath.Base(filepath.FromSlash(path))
	ctx.Output("name", name)
	if text, ok := o["text"].(string); ok && strings.EqualFold(filepath.Ext(name), ".json") {
		if value, err := parseJSON(text); err == nil {
			ctx.Output("value", value)
		}
	}
	return ctx.Declare(trajectory.Artifact{Type: trajectory.File, Name: name, Attributes: map[string]any{"path": path, "size": o["size"]}})
}

// fileUnreadable returns the error of a file that cannot be read, without the path of the folder.
func fileUnreadable(path string, err error) *engine.Error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return withHint(permanentError(CodeFileUnreadable, "the file %s cannot be read: %v", excerpt.Bytes(path, 200), err),
		"paths are relative to the folder of the flow's file and stay inside it; maxBytes limits the size")
}
