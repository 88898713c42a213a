package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/server/filestore"
	"github.com/weir-run/weir/server/trigger"
)

// Folder is a folder whose files may start runs.
type Folder struct {
	// Path is absolute.
	Path string
	// Users may make triggers of the folder; "*" is everyone.
	Users []string
}

type triggerFilesInput struct {
	TriggerPath
	Cursor string `query:"cursor" maxLength:"300" doc:"The member next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

type triggerFileList struct {
	Files []*trigger.FileRecord `json:"files" doc:"By name"`
	Next  string                `json:"next" doc:"The cursor of the next page; empty on the last one"`
}

func listTriggerFiles(c *call, in *triggerFilesInput) (*body[triggerFileList], error) {
	t, err := c.trigger(in.Trigger)
	if err != nil {
		return nil, err
	}
	list, err := c.triggers.Files(c, t.ID, in.Cursor, in.Limit+1)
	out := triggerFileList{Files: list}
	if len(list) > in.Limit {
		out.Files = list[:in.Limit]
		out.Next = list[in.Limit-1].Name
	}
	return bodyOf(out), err
}

// folderOf returns the folder of a trigger, if the user of the trigger may use it.
func (s *Server) folderOf(_ context.Context, t *trigger.Trigger) (trigger.Folder, error) {
	f, ok := s.options.Folders[t.Folder]
	if !ok || t.User != "" && !slices.Contains(f.Users, t.User) && !slices.Contains(f.Users, "*") {
		return trigger.Folder{}, fmt.Errorf("there is no folder %q in the configuration of the server that the user of the trigger may use", t.Folder)
	}
	return trigger.Folder{Path: f.Path, MaxSize: s.options.MaxFile}, nil
}

// refusedFor refuses a firing for now: times and requests have passed, a file is still there.
func refusedFor(t *trigger.Trigger, why string) (string, error) {
	if t.Kind == trigger.Files {
		return "", fmt.Errorf("%s (%w)", why, trigger.ErrLater)
	}
	return why, nil
}

// fileInput returns a file as the value of an input of a flow.
func fileInput(f *weir.Flow, input string, file *trigger.File) (engine.Value, error) {
	kind := flow.TypeAny
	for i := range f.Inputs {
		if f.Inputs[i].Name == input {
			kind = f.Inputs[i].Type
		}
	}
	mime, err := filestore.TypeOf(file.Name, file.Data)
	if err != nil {
		return nil, invalidRequest("payload", err.Error())
	}
	text := strings.HasPrefix(mime, "text/")
	switch {
	case kind == flow.TypeFile:
		out := map[string]any{"name": file.Name, "mime": mime, "size": int64(len(file.Data)), "sha256": file.SHA256}
		if text {
			out["text"] = string(file.Data)
		} else {
			out["base64"] = base64.StdEncoding.EncodeToString(file.Data)
		}
		return out, nil
	case kind == flow.TypeMessage && !text:
		part := map[string]any{"kind": "file", "mime": mime, "name": file.Name, "data": base64.StdEncoding.EncodeToString(file.Data)}
		if strings.HasPrefix(mime, "image/") {
			part["kind"] = "image"
		}
		return map[string]any{"role": "user", "parts": []any{part}}, nil
	case !text:
		return nil, invalidRequest("payload", fmt.Sprintf("the content is %s, which an input of type %s cannot take; type file and message can", mime, kind))
	case kind == flow.TypeText || kind == flow.TypeMessage:
		return string(file.Data), nil
	}
	return valueOf("payload", file.Data)
}

// checkFolders refuses folders without a path.
func (o *Options) checkFolders() error {
	for name := range o.Folders {
		if o.Folders[name].Path == "" {
			return errors.New("folder " + name + ": it has no path")
		}
	}
	return nil
}
