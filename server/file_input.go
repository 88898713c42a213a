package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/server/filestore"
)

// usedFiles are the files whose content became a part of inputs.
type usedFiles struct {
	*call
	list []*filestore.File
}

// read reads a file that the caller may see, at a place of a request.
func (u *usedFiles) read(id string) (*filestore.File, []byte, error) {
	f, err := u.file(id)
	if err != nil {
		return nil, nil, err
	}
	data, err := u.files.Read(u, f)
	u.list = append(u.list, f)
	return f, data, err
}

// usedBy records which run or session has the content.
func (u *usedFiles) usedBy(object string) error {
	for _, f := range u.list {
		if err := u.files.Use(context.WithoutCancel(u), f, object); err != nil {
			return err
		}
	}
	return nil
}

// inputs returns inputs of a flow with the content of the files that they name: {"file_id": ID} for an input of type file, and
// messages with parts that have a file_id.
func (u *usedFiles) inputs(f *weir.Flow, given map[string]any) (map[string]any, error) {
	out := maps.Clone(given)
	for i := range f.Inputs {
		in := &f.Inputs[i]
		v, ok := out[in.Name]
		if !ok {
			continue
		}
		var err error
		switch in.Type {
		case flow.TypeFile:
			v, err = u.fileValue(v)
		case flow.TypeMessage, flow.TypeAny:
			v, err = u.message("body.inputs."+in.Name, v)
		case flow.TypeMessages:
			v, err = u.messages("body.inputs."+in.Name, v)
		case flow.TypeText, flow.TypeNumber, flow.TypeBool, flow.TypeObject, flow.TypeList, flow.TypeContext, flow.TypeTools:
		}
		if err != nil {
			return nil, err
		}
		out[in.Name] = v
	}
	return out, nil
}

// fileValue returns a file that a value names as the value of an input of type file.
func (u *usedFiles) fileValue(v engine.Value) (engine.Value, error) {
	m, _ := v.(map[string]any)
	id, ok := m["file_id"].(string)
	if !ok || len(m) != 1 {
		return v, nil
	}
	f, data, err := u.read(id)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"name": f.Name, "mime": f.Type, "size": f.Size, "sha256": f.SHA256}
	if strings.HasPrefix(f.Type, "text/") {
		out["text"] = string(data)
	} else {
		out["base64"] = base64.StdEncoding.EncodeToString(data)
	}
	return out, nil
}

func (u *usedFiles) messages(place string, v engine.Value) (engine.Value, error) {
	list, ok := v.([]any)
	if !ok {
		return v, nil
	}
	out := make([]any, len(list))
	for i, x := range list {
		var err error
		if out[i], err = u.message(fmt.Sprintf("%s.%d", place, i), x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// message returns a message with the content of the files that its parts name.
func (u *usedFiles) message(place string, v engine.Value) (engine.Value, error) {
	m, _ := v.(map[string]any)
	parts, ok := m["parts"].([]any)
	if !ok || m["role"] == nil {
		return v, nil
	}
	out := maps.Clone(m)
	changed := make([]any, len(parts))
	for i, x := range parts {
		changed[i] = x
		p, _ := x.(map[string]any)
		id, ok := p["file_id"].(string)
		if !ok {
			continue
		}
		kind, _ := p["kind"].(string)
		part, err := u.part(fmt.Sprintf("%s.parts.%d", place, i), kind, id)
		if err != nil {
			return nil, err
		}
		changed[i] = map[string]any{"kind": part.Kind, "mime": part.MIME, "name": part.Name, "data": base64.StdEncoding.EncodeToString(part.Data)}
	}
	out["parts"] = changed
	return out, nil
}

// part returns a file as a part of a message. kind is image, file, or "" for that of its type.
func (u *usedFiles) part(place, kind, id string) (convo.Part, error) {
	f, data, err := u.read(id)
	if err != nil {
		return convo.Part{}, err
	}
	image := strings.HasPrefix(f.Type, "image/")
	switch {
	case kind == "" && image:
		kind = "image"
	case kind == "":
		kind = "file"
	case kind == "image" && !image:
		return convo.Part{}, invalidRequest(place, "file "+id+" is no image: its content is "+f.Type)
	}
	return convo.Part{Kind: kind, MIME: f.Type, Name: f.Name, Data: data}, nil
}

// FilePart returns a file that the caller may see as a part of a message, and the function that records which run or session
// has it. kind is "image", "file", or "" for that of its type. place is where the request names it.
func (c *Caller) FilePart(place, kind, id string) (p convo.Part, usedBy func(object string) error, err error) {
	u := &usedFiles{call: &c.call}
	p, err = u.part(place, kind, id)
	return p, u.usedBy, err
}
