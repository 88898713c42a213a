package e2btest

import (
	"bufio"
	"context"
	_ "embed" // the interpreter
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed kernel.py
var kernelProgram string

// kernel is a running interpreter.
type kernel struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// maxLine bounds how much of the stream is read at once, in bytes.
const maxLine = 1 << 20

func (s *Server) start(b *cloudSandbox) (*kernel, error) {
	cmd := exec.Command(s.python, "-c", kernelProgram) //nolint:noctx // ends with its sandbox
	cmd.Dir, cmd.Stderr = b.dir, os.Stderr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "PYTHONUTF8=1"}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &kernel{cmd: cmd, in: in, out: bufio.NewReaderSize(out, maxLine)}, cmd.Start()
}

// stop ends all that runs in the sandbox; readers of the interpreter
// get the end.
func (b *cloudSandbox) stop() {
	b.mu.Lock()
	k := b.kernel
	b.mu.Unlock()
	if k == nil {
		return
	}
	_ = k.cmd.Process.Kill()
	for _, pid := range b.processes() {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill()
		}
	}
	go func() { _ = k.cmd.Wait() }()
}

// processes lists those that work in the sandbox's folder, as a machine of its
// own would have them.
func (b *cloudSandbox) processes() []int {
	var list []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if dir, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")); err == nil && strings.HasPrefix(dir, b.dir) {
			list = append(list, pid)
		}
	}
	return list
}

// interpreter returns the sandbox's, started where it was not yet.
func (s *Server) interpreter(b *cloudSandbox) (*kernel, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kernel != nil {
		return b.kernel, nil
	}
	k, err := s.start(b)
	if err == nil {
		b.kernel = k
	}
	return k, err
}

// execute runs a cell and streams what it brings.
func (s *Server) execute(w http.ResponseWriter, r *http.Request, b *cloudSandbox) {
	var body struct {
		Code      string  `json:"code"`
		ContextID *string `json:"context_id"`
		Language  *string `json:"language"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		answer(w, http.StatusUnprocessableEntity, map[string]string{"detail": err.Error()})
		return
	}
	switch {
	case body.ContextID != nil && body.Language != nil:
		http.Error(w, "Only one of context_id or language can be provided", http.StatusBadRequest)
		return
	case body.ContextID != nil:
		http.Error(w, "Context "+*body.ContextID+" not found", http.StatusNotFound)
		return
	}
	s.mu.Lock()
	canned := s.stream
	s.mu.Unlock()
	if canned != "" {
		_, _ = io.WriteString(w, canned)
		return
	}
	b.run.Lock()
	defer b.run.Unlock()
	k, err := s.interpreter(b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	line, _ := json.Marshal(map[string]string{"code": body.Code})
	_, _ = k.in.Write(append(line, '\n'))
	// No one reads what is sent to a client that has left.
	defer context.AfterFunc(r.Context(), func() { _ = k.cmd.Process.Signal(os.Interrupt) })()
	if f := s.currentHooks().execute; f != nil {
		f(b.ID)
	}
	k.stream(w)
}

// stream passes on what the interpreter says until the cell is done, or it is.
func (k *kernel) stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w)
	say := func(line []byte) {
		_, _ = w.Write(line)
		_ = flush.Flush()
	}
	say([]byte(`{"type": "keepalive"}` + "\n")) // the cloud's come with time; one is as good
	for {
		line, err := k.out.ReadBytes('\n')
		if err != nil {
			say([]byte(`{"type": "error", "name": "UnexpectedEndOfExecution", ` +
				`"value": "Connection to the execution was closed before the execution was finished", "traceback": ""}` + "\n"))
			break
		}
		var frame struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(line, &frame) == nil && frame.Type == "idle" {
			break
		}
		say(line)
	}
	say([]byte(`{"type": "end_of_execution"}` + "\n"))
}

// nameOf returns the name of a file of a form, with its folders.
func nameOf(disposition string) string {
	_, params, err := mime.ParseMediaType(disposition)
	if err != nil {
		return ""
	}
	return params["filename"]
}
