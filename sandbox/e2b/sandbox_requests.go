package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
)

// The ports of the services in a sandbox: the code interpreter, and the daemon for files.
const (
	interpreterPort = 49999
	daemonPort      = 49983
)

// user is the owner of the files.
const user = "user"

// address returns the address of a port of the sandbox.
func (e *Executor) address(b *cloudSandbox, port int) string {
	if e.options.Sandbox != "" {
		return e.options.Sandbox
	}
	domain := b.Domain
	if domain == "" {
		domain = e.options.Domain
	}
	return "https://" + strconv.Itoa(port) + "-" + b.ID + "." + domain
}

// requestSandbox sends a request to a port of the sandbox. Without an error the answer has status 2xx.
func (e *Executor) requestSandbox(ctx context.Context, b *cloudSandbox, port int, method, path, kind string, body io.Reader) (*http.Response, *sandbox.Error) {
	r, err := http.NewRequestWithContext(ctx, method, e.address(b, port)+path, body)
	if err != nil {
		return nil, lostSandboxError("ask the sandbox "+b.ID, err)
	}
	r.Header.Set("E2b-Sandbox-Id", b.ID)
	r.Header.Set("E2b-Sandbox-Port", strconv.Itoa(port))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if b.EnvdToken != "" {
		r.Header.Set("X-Access-Token", b.EnvdToken)
	}
	if b.TrafficToken != "" {
		r.Header.Set("E2B-Traffic-Access-Token", b.TrafficToken)
	}
	answer, err := e.options.HTTP.Do(r)
	if err != nil {
		return nil, lostSandboxError("reach the sandbox "+b.ID, err)
	}
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return answer, nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	_ = answer.Body.Close()
	fault := &sandbox.Error{
		Code: engine.CodeSandboxFailed, Retry: answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500,
		Message: fmt.Sprintf("the sandbox %s answers %d: %s", b.ID, answer.StatusCode, serverMessage(answer, text)),
	}
	if answer.StatusCode == http.StatusBadGateway {
		fault.Message = "the sandbox " + b.ID + " is gone: " + serverMessage(answer, text)
	}
	return nil, fault
}

// upload is a file to be uploaded.
type upload struct {
	path string // relative to the user's home, which is the working directory of code
	data []byte
}

// write uploads files in one request that every version of the daemon supports.
func (e *Executor) write(ctx context.Context, b *cloudSandbox, files []upload) *sandbox.Error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, f := range files {
		part, err := form.CreateFormFile("file", f.path)
		if err == nil {
			_, err = part.Write(f.data)
		}
		if err != nil {
			return lostSandboxError("write a file for the sandbox", err)
		}
	}
	if err := form.Close(); err != nil {
		return lostSandboxError("write files for the sandbox", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	answer, fault := e.requestSandbox(ctx, b, daemonPort, http.MethodPost, "/files?username="+user, form.FormDataContentType(), &body)
	if fault != nil {
		return fault
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	_ = answer.Body.Close()
	return nil
}

// read returns a file of the sandbox, up to a limit in bytes.
func (e *Executor) read(ctx context.Context, b *cloudSandbox, path string, most int64) ([]byte, *sandbox.Error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	query := url.Values{"path": {path}, "username": {user}}
	answer, fault := e.requestSandbox(ctx, b, daemonPort, http.MethodGet, "/files?"+query.Encode(), "", nil)
	if fault != nil {
		return nil, fault
	}
	defer drainAndClose(answer)
	data, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return nil, lostSandboxError("read what the sandbox "+b.ID+" left", err)
	}
	if int64(len(data)) > most {
		return nil, &sandbox.Error{Code: engine.CodeCodeOutput, Message: fmt.Sprintf("the code left more than %d bytes", most)}
	}
	return data, nil
}

// drainAndClose reads the rest of a body and closes it.
func drainAndClose(answer *http.Response) { _ = answer.Body.Close() }

// execute runs code in the sandbox's interpreter and reads the stream.
func (e *Executor) execute(ctx context.Context, b *cloudSandbox, code string, most int64, onOutput func(stdout, stderr string)) (*stream, *sandbox.Error) {
	body, err := json.Marshal(map[string]string{"code": code, "language": "python"})
	if err != nil {
		return nil, lostSandboxError("ask the sandbox", err)
	}
	answer, fault := e.requestSandbox(ctx, b, interpreterPort, http.MethodPost, "/execute", "application/json", bytes.NewReader(body))
	if fault != nil {
		return nil, fault
	}
	defer drainAndClose(answer)
	s := &stream{most: most, onOutput: onOutput}
	return s, s.read(answer.Body, b.ID)
}
