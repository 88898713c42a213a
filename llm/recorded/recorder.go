package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// Recorder records every model call of the providers that it wraps, including failed ones, as one llm.Recording a
// line when the call ends. It is safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	w    io.Writer
	file *os.File // closed by Close; nil if the caller owns the writer
	err  error
}

// NewRecorder writes to w, one Write for each line.
func NewRecorder(w io.Writer) *Recorder { return &Recorder{w: w} }

// NewFileRecorder appends to a file. A new file is readable by its owner only, because it contains the conversations.
// An incomplete last line is removed.
func NewFileRecorder(path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	if err := truncatePartialLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("open recording %s: %w", path, err), f.Close())
	}
	return &Recorder{w: f, file: f}, nil
}

// truncatePartialLine cuts a file after its last newline.
func truncatePartialLine(f *os.File) error {
	const block = 64 << 10
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	buf := make([]byte, block)
	keep := end
	for keep > 0 {
		from := max(keep-block, 0)
		b := buf[:keep-from]
		if _, err := f.ReadAt(b, from); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			keep = from + int64(i) + 1
			break
		}
		keep = from
	}
	if keep == end {
		return nil
	}
	return f.Truncate(keep)
}

// Wrap returns a provider that calls p and records the result. A call that was abandoned because its context ended is
// not recorded.
func (r *Recorder) Wrap(p llm.Provider) llm.Provider { return &recordingProvider{r, p} }

// Close returns the first write error, and closes the file of NewFileRecorder.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return r.err
	}
	err := errors.Join(r.err, r.file.Close())
	r.file, r.w, r.err = nil, nil, nil
	return err
}

type recordingProvider struct {
	recorder *Recorder
	provider llm.Provider
}

// Generate makes the call and records it.
func (r *recordingProvider) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	resp, err := r.provider.Generate(ctx, req, emit)
	if err != nil && ctx.Err() != nil {
		return resp, err
	}
	r.recorder.write(req, resp, err)
	return resp, err
}

func (r *Recorder) write(req *llm.Request, resp *llm.Response, failed error) {
	rec := llm.Recording{Key: req.Key, Response: resp}
	if failed != nil {
		rec.Response, rec.Error = nil, &llm.RecordedError{Code: engine.CodeModelUnavailable, Message: failed.Error()}
		if e, ok := errors.AsType[*llm.Error](failed); ok {
			rec.Error.Code, rec.Error.Message = e.Code, e.Message
		}
	}
	line, err := encode(req, rec)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.w == nil {
		err = os.ErrClosed
	}
	if err == nil {
		_, err = r.w.Write(line)
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("record the call %s: %w", req.Key, err)
	}
}

func encode(req *llm.Request, rec llm.Recording) ([]byte, error) {
	var err error
	if rec.Request, err = req.Canonical(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(rec)
	return b.Bytes(), err
}
