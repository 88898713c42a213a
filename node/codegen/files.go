package codegen

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// File is a file that code may read.
type File struct {
	// Name is the name of the file in the code.
	Name string
	// Path is the path in the flow, relative to the folder of the flow's file.
	Path string
	// Value is set instead of Path if the run selects the file: an object {path}, with a
	// path inside the folder of the flow's file, or {text} or {base64} with the content. A
	// text is a path.
	Value engine.Value
}

// mountFiles finds the files of a job. The returned function removes the files that were
// written for it.
func mountFiles(ctx *node.Ctx, files []File) (mounted []sandbox.File, done func(), err error) {
	folder := ""
	done = func() {
		if folder != "" {
			_ = os.RemoveAll(folder) // remaining files are in the temporary folder
		}
	}
	for _, f := range files {
		at, content, held, err := f.resolve(ctx.Info().Folder)
		if err == nil && held {
			if folder == "" {
				folder, err = os.MkdirTemp("", "weir-files-")
			}
			if at = filepath.Join(folder, f.Name); err == nil {
				err = os.WriteFile(at, content, 0o600)
			}
		}
		if err != nil {
			done()
			return nil, func() {}, fileError(f.Name, err)
		}
		mounted = append(mounted, sandbox.File{Name: f.Name, Path: at})
	}
	return mounted, done, nil
}

func fileError(name string, err error) error {
	hint := "paths are relative to the folder of the flow's file"
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the file %s does not exist", path.Path)
	}
	return &engine.Error{
		Code: engine.CodeInput, Permanent: true, Message: fmt.Sprintf("files.%s: %v", name, err), Hint: hint,
	}
}

// resolve returns the path of the file, or its content if the run has it.
func (f *File) resolve(folder string) (at string, content []byte, held bool, err error) {
	if f.Value == nil {
		at, err = realFile(joinInside(folder, f.Path))
		return at, nil, false, err
	}
	switch v := f.Value.(type) {
	case string:
		at, err = realFileInside(folder, v)
		return at, nil, false, err
	case map[string]any:
		if text, ok := v["text"].(string); ok {
			return "", []byte(text), true, nil
		}
		if coded, ok := v["base64"].(string); ok {
			content, err = base64.StdEncoding.DecodeString(coded)
			return "", content, true, err
		}
		if path, ok := v["path"].(string); ok {
			at, err = realFileInside(folder, path)
			return at, nil, false, err
		}
	}
	return "", nil, false, errors.New("expected a path, or an object with path, text or base64")
}

func joinInside(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// realFile returns the real path of a regular file.
func realFile(path string) (string, error) {
	at, err := filepath.EvalSymlinks(path)
	if err == nil {
		at, err = filepath.Abs(at)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(at)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", path)
	}
	return at, nil
}

// realFileInside is realFile for a path from a run, which must be inside the folder.
func realFileInside(folder, path string) (string, error) {
	at, err := realFile(joinInside(folder, path))
	if err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(joinInside(folder, "."))
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(at, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is not in the folder of the flow's file; paths from a run must be inside it", path)
	}
	return at, nil
}

// Declare records the files that the code was given, for the trajectory of the run. It
// depends only on settings and inputs, so a re-entered node records the same.
func (j *Job) Declare(ctx *node.Ctx) error {
	for _, f := range j.Files {
		if err := ctx.Declare(f.artifact()); err != nil {
			return fmt.Errorf("declare file %s: %w", f.Name, err)
		}
	}
	return nil
}

// artifact returns the file by its path, or else by its name.
func (f *File) artifact() trajectory.Artifact {
	name, attrs := f.Path, map[string]any{"as": f.Name}
	switch v := f.Value.(type) {
	case string:
		name = v
	case map[string]any:
		text, isText := v["text"].(string)
		coded, isCoded := v["base64"].(string)
		switch {
		case isText:
			name, attrs["size"] = textOf(v["name"]), int64(len(text))
		case isCoded:
			name, attrs["size"] = textOf(v["name"]), int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(coded, "="))))
		default:
			name = textOf(v["path"])
		}
	}
	if name == "" {
		name = f.Name
	}
	return trajectory.Artifact{Type: trajectory.File, Name: tool.DataName(name), Relation: trajectory.HasAdditionalFile, Attributes: attrs}
}
