package e2b

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// maxFrame limits one line of the stream, in bytes.
const maxFrame = 16 << 20

// stream is the stream of an execution, as lines of JSON. Text is sent in chunks that need not end at line ends.
type stream struct {
	most           int64                       // limit in bytes of stdout and of stderr, each
	onOutput       func(stdout, stderr string) // or nil
	stdout, stderr strings.Builder
	failed         *failure
	ended          bool
}

// failure is an error of the executed code, or of the executing service.
type failure struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}

type frame struct {
	Type string `json:"type"`
	Text string `json:"text"`
	failure
}

// errOutputLimit: the output of the code exceeds its limit.
var errOutputLimit = errors.New("too much output")

// read reads to the end of the execution. It ignores frames of unknown kinds, results and keepalives.
func (s *stream) read(r io.Reader, id string) *sandbox.Error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxFrame)
	for lines.Scan() {
		var f frame
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return lostSandboxError("read the stream of the sandbox "+id, err)
		}
		if err := s.addFrame(&f); err != nil {
			return outputLimitError(s.most)
		}
		if s.ended {
			return s.interpreterError(id)
		}
	}
	if err := lines.Err(); err != nil {
		return lostSandboxError("read the stream of the sandbox "+id, err)
	}
	if s.failed != nil {
		return s.interpreterError(id)
	}
	return &sandbox.Error{Code: engine.CodeSandboxFailed, Message: "the stream of the sandbox " + id + " ended before the execution did", Retry: true}
}

func (s *stream) addFrame(f *frame) error {
	switch f.Type {
	case "stdout":
		return s.appendText(&s.stdout, f.Text, func(text string) { s.onOutput(text, "") })
	case "stderr":
		return s.appendText(&s.stderr, f.Text, func(text string) { s.onOutput("", text) })
	case "error":
		if s.failed == nil {
			s.failed = &f.failure
		}
	case "end_of_execution":
		s.ended = true
	}
	return nil
}

func (s *stream) appendText(to *strings.Builder, text string, emit func(string)) error {
	var err error
	if room := s.most - int64(to.Len()); int64(len(text)) > room {
		text, err = strings.ToValidUTF8(text[:room], ""), errOutputLimit
	}
	to.WriteString(text)
	if s.onOutput != nil && text != "" {
		emit(text)
	}
	return err
}

// interpreterError converts an error of the interpreter. The job's code has its own process, so none of these is
// caused by the code, unless it killed the kernel.
func (s *stream) interpreterError(id string) *sandbox.Error {
	if s.failed == nil {
		return nil
	}
	switch s.failed.Name {
	case "UnexpectedEndOfExecution", "ContextRestarting", "WebSocketError":
		return &sandbox.Error{
			Code: engine.CodeCodeKilled, Message: "the kernel in the sandbox " + id + " ended: " + s.failed.Name + ": " + s.failed.Value,
			Hint: "The code may have taken all memory of the sandbox, or killed what runs it.",
		}
	}
	return &sandbox.Error{
		Code: engine.CodeSandboxFailed, Message: "the sandbox " + id + " cannot run code: " + s.failed.Name + ": " + s.failed.Value,
		Traceback: s.failed.Traceback, Retry: true,
	}
}
