package e2b

import (
	_ "embed" // the programs
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

//go:embed inside.py
var programTemplate string

//go:embed program.py
var programHead string

// Paths in the sandbox, relative to the user's home, which is the interpreter's working directory.
const (
	programPath = "weir/program.py"
	jobPath     = "weir/job.json"
	filesPath   = "weir/files/"
	endPath     = "weir/end.json"
)

// maxFiles limits the total size of a job's files, maxEnd the size of the result file, in bytes.
const (
	maxFiles = 256 << 20
	maxEnd   = 64 << 20
)

// defaultDisk limits a file that code writes, in bytes.
const defaultDisk = 256 << 20

// jobFile is the content of the uploaded job.
type jobFile struct {
	Code    string            `json:"code"`
	Context json.RawMessage   `json:"context"`
	Inputs  json.RawMessage   `json:"inputs"`
	Files   map[string]string `json:"files"` // paths relative to the working directory of the code
	Memory  int64             `json:"memory"`
	Disk    int64             `json:"disk"`
	Depth   int               `json:"depth"`
}

// endFile describes the end of the code's process.
type endFile struct {
	End    string  `json:"end"` // "done", "time" or "output"
	Exit   int     `json:"exit"`
	Took   float64 `json:"took"` // seconds
	Report string  `json:"report"`
}

// uploadsOf returns the uploads of a job: the program, the job and its files. function is the function of the harness
// or of the check that the program calls.
func uploadsOf(job *sandbox.Job, limits sandbox.Limits, program, function string) ([]upload, error) {
	t := jobFile{Code: job.Code, Files: map[string]string{}, Memory: limits.Memory, Disk: limits.Disk, Depth: sandbox.MaxDepth}
	if t.Disk <= 0 {
		t.Disk = defaultDisk
	}
	var err error
	if t.Context, err = engine.AppendValue(nil, job.CodeContext()); err != nil {
		return nil, lostSandboxError("write the context", err)
	}
	inputs := job.Inputs
	if inputs == nil {
		inputs = map[string]any{}
	}
	if t.Inputs, err = engine.AppendValue(nil, inputs); err != nil {
		return nil, lostSandboxError("write the inputs", err)
	}
	uploads := []upload{{programPath, []byte(program + programHead + "weir_main(" + function + ")\n")}}
	room := int64(maxFiles)
	for i, f := range job.Files {
		data, err := contents(f, room)
		if err != nil {
			return nil, &sandbox.Error{Code: engine.CodeSandboxFailed, Message: fmt.Sprintf("the file %s: %v", f.Name, err)}
		}
		room -= int64(len(data))
		// The name is only for the code; libraries read its extension.
		path := filesPath + strconv.Itoa(i+1) + plainExtension(filepath.Ext(f.Path))
		t.Files[f.Name] = "../../" + path
		uploads = append(uploads, upload{path, data})
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, lostSandboxError("write the job", err)
	}
	return append(uploads, upload{jobPath, raw}), nil
}

func contents(f sandbox.File, most int64) ([]byte, error) {
	info, err := os.Stat(f.Path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", f.Path)
	case info.Size() > most:
		return nil, fmt.Errorf("the files of a job in the cloud may hold %d MB together", maxFiles>>20)
	}
	return os.ReadFile(f.Path)
}

// plainExtension returns the extension of a file's name if it needs no quotes.
func plainExtension(extension string) string {
	const longest = 12
	if len(extension) > longest {
		return ""
	}
	for i, c := range extension {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if i > 0 && !letter {
			return ""
		}
	}
	return extension
}

// callExpression returns the code that the interpreter runs.
func callExpression(limits sandbox.Limits) string {
	return fmt.Sprintf("%s\n\n_weir_run(%g, %d)\n", programTemplate, limits.Time.Seconds(), limits.Output)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
