package e2b_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/e2b"
	"github.com/weir-run/weir/sandbox/e2b/e2btest"
	"github.com/weir-run/weir/sandbox/sandboxtest"
)

func executor(s *e2btest.Server) *e2b.Executor {
	return e2b.New(e2b.Options{Key: key(e2btest.Key), API: s.URL, Sandbox: s.URL})
}

func key(text string) func() (string, error) {
	return func() (string, error) { return text, nil }
}

func TestE2BExecutor(t *testing.T) {
	s := e2btest.Serve(t)
	e := executor(s)
	sandboxtest.Suite(t, func(*testing.T) sandbox.Executor { return e }, sandboxtest.Python())
	if left := s.Running(); len(left) > 0 {
		t.Errorf("%d sandboxes were left behind", len(left))
	}
}

// run runs a job on a server, and returns the error as what it is.
func run(t *testing.T, e *e2b.Executor, job *sandbox.Job) (*sandbox.Result, *sandbox.Error) {
	t.Helper()
	r, err := e.Run(t.Context(), job)
	if err == nil {
		return r, nil
	}
	fault, ok := errors.AsType[*sandbox.Error](err)
	if !ok {
		t.Fatalf("the error is of type %T: %v", err, err)
	}
	return r, fault
}

func TestEachJobHasASandboxOfItsOwnThatIsDeleted(t *testing.T) {
	s := e2btest.Serve(t)
	e := executor(s)
	jobs := []*sandbox.Job{
		{Code: "context['a'] = 1", Limits: sandbox.Limits{Time: 7 * time.Second}},
		{Code: "raise ValueError('x')", Limits: sandbox.Limits{Time: 7 * time.Second}},
		{Code: "while True: pass", Limits: sandbox.Limits{Time: 100 * time.Millisecond}},
	}
	ids := map[string]bool{}
	for _, job := range jobs {
		r, _ := run(t, e, job)
		ids[r.Sandbox] = true
	}
	made := s.Created()
	if len(ids) != 3 || len(made) != 3 || s.Deleted() != 3 || len(s.Running()) != 0 {
		t.Errorf("%d ids, %d made, %d deleted, %d running", len(ids), len(made), s.Deleted(), len(s.Running()))
	}
	for i, m := range made {
		if !ids[m.ID] || m.InternetAccess == nil || *m.InternetAccess || m.Template != e2b.DefaultTemplate || len(m.EnvVars) > 0 {
			t.Errorf("sandbox %d was asked for as %+v", i, m)
		}
	}
	if made[0].Timeout != 67 || made[2].Timeout != 61 {
		t.Errorf("sandboxes end after %d and %d s", made[0].Timeout, made[2].Timeout)
	}
}

func TestAJobThatIsCancelledHasItsSandboxDeleted(t *testing.T) {
	s := e2btest.Serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.OnExecute(func(string) { cancel() })
	_, err := executor(s).Run(ctx, &sandbox.Job{Code: "while True: pass"})
	fault, _ := errors.AsType[*sandbox.Error](err)
	if fault == nil || fault.Code != engine.CodeCancelled {
		t.Fatalf("the error is %v", err)
	}
	if len(s.Created()) != 1 || s.Deleted() != 1 {
		t.Errorf("%d sandboxes made, %d deleted", len(s.Created()), s.Deleted())
	}
}

func TestSandboxCreatedAfterCancellationIsDeleted(t *testing.T) {
	s := e2btest.Serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	deleted := make(chan string, 1)
	s.OnCreate(cancel)
	s.OnDelete(func(id string) { deleted <- id })
	if _, err := executor(s).Run(ctx, &sandbox.Job{Code: "x = 1"}); err == nil {
		t.Fatal("no error")
	}
	<-deleted
	if len(s.Running()) > 0 {
		t.Error("the sandbox is still there")
	}
}

func TestBusyServerIsRetriedAfterItsRetryAfter(t *testing.T) {
	s := e2btest.Serve(t)
	busy := e2btest.Refusal{Status: http.StatusTooManyRequests, RetryAfter: "0"}
	s.Refuse(busy, busy, busy)
	if _, fault := run(t, executor(s), &sandbox.Job{Code: "x = 1"}); fault != nil {
		t.Errorf("after three refusals: %v", fault)
	}
	for name, list := range map[string][]e2btest.Refusal{
		"four refusals":             {busy, busy, busy, busy},
		"one that does not say":     {{Status: http.StatusTooManyRequests}},
		"one that says it in words": {{Status: http.StatusTooManyRequests, RetryAfter: "Fri, 31 Dec 2027 23:59:59 GMT"}},
		"one that says too long":    {{Status: http.StatusTooManyRequests, RetryAfter: "3600"}},
		"a server that is down":     {{Status: http.StatusServiceUnavailable}},
	} {
		s := e2btest.Serve(t)
		s.Refuse(list...)
		_, fault := run(t, executor(s), &sandbox.Job{Code: "x = 1"})
		if fault == nil || fault.Code != engine.CodeSandboxFailed || !fault.Retry || !strings.Contains(fault.Message, "concurrent sandboxes") {
			t.Errorf("%s: %+v", name, fault)
		}
	}
}

func TestPermanentErrorsAreReported(t *testing.T) {
	s := e2btest.Serve(t)
	wrong := e2b.New(e2b.Options{Key: key("e2b_wrong"), API: s.URL, Sandbox: s.URL})
	none := e2b.New(e2b.Options{API: s.URL, Sandbox: s.URL})
	unread := e2b.New(e2b.Options{Key: func() (string, error) { return "", errors.New("the file is empty") }, API: s.URL, Sandbox: s.URL})
	for name, e := range map[string]*e2b.Executor{"a wrong key": wrong, "no key": none, "a key that cannot be read": unread} {
		if _, fault := run(t, e, &sandbox.Job{Code: "x = 1"}); fault == nil || fault.Code != engine.CodeSandboxUnavailable || fault.Retry || fault.Hint == "" {
			t.Errorf("%s: %+v", name, fault)
		}
		if err := e.Probe(t.Context()); (err == nil) != (e == wrong) { // which no server has seen
			t.Errorf("%s: the probe says %v", name, err)
		}
	}
	unknown := e2b.New(e2b.Options{Key: key(e2btest.Key), API: s.URL, Sandbox: s.URL, Template: "no-such"})
	if _, fault := run(t, unknown, &sandbox.Job{Code: "x = 1"}); fault == nil || fault.Retry || !strings.Contains(fault.Message, "no-such") {
		t.Errorf("an unknown template: %+v", fault)
	}
	nowhere := e2b.New(e2b.Options{Key: key(e2btest.Key), API: "http://127.0.0.1:1"})
	if _, fault := run(t, nowhere, &sandbox.Job{Code: "x = 1"}); fault == nil || fault.Code != engine.CodeSandboxFailed || !fault.Retry {
		t.Errorf("a server that is not there: %+v", fault)
	}
	if err := executor(s).Probe(t.Context()); err != nil {
		t.Errorf("the probe of one with a key says %v", err)
	}
}

func TestLostSandboxFailsTheJobRetryably(t *testing.T) {
	s := e2btest.Serve(t)
	s.OnExecute(func(id string) { s.Expire(id) })
	_, fault := run(t, executor(s), &sandbox.Job{Code: "while True: pass"})
	if fault == nil || fault.Code != engine.CodeCodeKilled && !fault.Retry {
		t.Errorf("lost while it ran: %+v", fault)
	}
	s = e2btest.Serve(t)
	s.OnUpload(func(id string) { s.Expire(id) })
	_, fault = run(t, executor(s), &sandbox.Job{Code: "x = 1"})
	if fault == nil || fault.Code != engine.CodeSandboxFailed || !fault.Retry || !strings.Contains(fault.Message, "gone") {
		t.Errorf("lost before it ran: %+v", fault)
	}
}

func TestCodeThatKillsTheKernelIsKilled(t *testing.T) {
	s := e2btest.Serve(t)
	_, fault := run(t, executor(s), &sandbox.Job{Code: "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass\n"})
	if fault == nil || fault.Code != engine.CodeCodeKilled || !strings.Contains(fault.Message, "UnexpectedEndOfExecution") {
		t.Errorf("the error is %+v", fault)
	}
	if s.Deleted() != 1 {
		t.Error("the sandbox was not deleted")
	}
}

func TestTheKeyGoesToTheAPIAlone(t *testing.T) {
	s := e2btest.Serve(t)
	if _, fault := run(t, executor(s), &sandbox.Job{Code: "x = 1", Files: []sandbox.File{{Name: "f", Path: "e2b_test.go"}}}); fault != nil {
		t.Fatal(fault)
	}
	for _, r := range s.Requests() {
		toAPI := strings.Contains(r.Path, "sandboxes")
		if r.Key != toAPI {
			t.Errorf("%s: with the key: %t", r.Path, r.Key)
		}
	}
	r, fault := run(t, executor(s), &sandbox.Job{Code: "import os\ncontext['env'] = sorted(os.environ)"})
	if fault != nil || !reflect.DeepEqual(r.Set["env"], []any{"HOME", "LANG", "PATH", "PYTHONHASHSEED", "PYTHONIOENCODING"}) {
		t.Errorf("the code's environment is %v, %v", r.Set, fault)
	}
}

func TestFilesKeepWhatTheyAreAndCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	data := []byte("a;b\r\n1;\xff\x00\n")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r, fault := run(t, executor(e2btest.Serve(t)), &sandbox.Job{
		Code: "import os\nwith open(files['the rows'], 'rb') as f: context['sum'] = sum(f.read())\n" +
			"context['end'] = os.path.splitext(files['the rows'])[1]\ncontext['mode'] = os.stat(files['the rows']).st_mode & 0o777\n",
		Files: []sandbox.File{{Name: "the rows", Path: path}},
	})
	sum := int64(0)
	for _, b := range data {
		sum += int64(b)
	}
	if fault != nil || !reflect.DeepEqual(r.Set, map[string]any{"sum": sum, "end": ".csv", "mode": int64(0o444)}) {
		t.Errorf("the code read %v, %v", r.Set, fault)
	}
	_, fault = run(t, executor(e2btest.Serve(t)), &sandbox.Job{Code: "x = 1", Files: []sandbox.File{{Name: "folder", Path: t.TempDir()}}})
	if fault == nil || !strings.Contains(fault.Message, "folder") {
		t.Errorf("a folder for a file: %v", fault)
	}
}

func TestStreamIsReadIncrementally(t *testing.T) {
	end := `{"type": "end_of_execution"}` + "\n"
	for _, tt := range []struct {
		name, stream string
		code         string // of the error
		stdout       string
	}{
		{"cut off", `{"type":"stdout","text":"a"}` + "\n", engine.CodeSandboxFailed, "a"},
		{"not JSON", "oops\n" + end, engine.CodeSandboxFailed, ""},
		{"the kernel restarts", `{"type":"error","name":"ContextRestarting","value":"Context was restarted","traceback":""}` + "\n" + end, engine.CodeCodeKilled, ""},
		{"another error", `{"type":"error","name":"ImportError","value":"x","traceback":"t"}` + "\n" + end, engine.CodeSandboxFailed, ""},
		{
			"frames that say nothing to it",
			"\n" + `{"type":"keepalive"}` + "\n" + `{"type":"result","text":"1","is_main_result":true}` + "\n" + `{"type":"some_day"}` + "\n" +
				`{"type":"stdout","text":"ü","timestamp":"2026-01-01T00:00:00Z"}` + "\n" + `{"type":"stdout","text":"\nb"}` + "\n" + end,
			engine.CodeSandboxFailed, "ü\nb", // and then there is no weir/end.json
		},
		{"a flood", strings.Repeat(`{"type":"stdout","text":"0123456789"}`+"\n", 200_000) + end, engine.CodeCodeOutput, strings.Repeat("0123456789", 1<<20/10) + "012345"},
	} {
		s := e2btest.Serve(t)
		s.Stream(tt.stream)
		r, fault := run(t, executor(s), &sandbox.Job{Code: "x = 1"})
		if fault == nil || fault.Code != tt.code || r.Stdout != tt.stdout {
			t.Errorf("%s: %+v, %.40q (%d bytes)", tt.name, fault, r.Stdout, len(r.Stdout))
		}
		if s.Deleted() != 1 {
			t.Errorf("%s: the sandbox was not deleted", tt.name)
		}
	}
}
