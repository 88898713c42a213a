package crash

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
)

// Ask is one effect that the ledger was asked for, as its log has it.
type Ask struct {
	// Key is the effect's idempotency key, RUN/PATH/NAME#N.
	Key string `json:"key"`
	// At is when it came, Unix microseconds.
	At int64 `json:"at"`
	// What is the method and path of a request, or the model that was asked.
	What string `json:"what"`
	// Digest identifies the request.
	Digest string `json:"digest"`
	// Status is what was answered.
	Status int `json:"status"`
}

// Addresses are where a ledger listens.
type Addresses struct {
	// HTTP is host:port; a request's path is /WHO/NAME, where WHO is the run for
	// requests without a key of their own.
	HTTP string `json:"http"`
	// Model is the base URL of an OpenAI-compatible server.
	Model string `json:"model"`
}

// Ledger is a service that keeps the list of what it was asked for: in dir, one
// file a run, one line an ask, on the disk before it answers. It answers the
// same to the same request, like a service that knows idempotency keys; what it
// is asked for under a name that begins with "flaky" it refuses with 503 the
// first time, and under one that begins with "slow" it takes its time for. A model
// that is told "call NAME:WHO NAME@WHO" calls these tools.
type Ledger struct {
	dir   string
	model *llmtest.Server
	http  *http.Server
	at    net.Listener

	mu    sync.Mutex
	asked map[string]bool // runs and flaky names that were refused once
}

// answerDelay is how long a slow answer takes.
const answerDelay = 400 * time.Millisecond

// StartLedger starts a ledger that writes below dir. The caller must Close it.
func StartLedger(ctx context.Context, dir string) (*Ledger, error) {
	at, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{dir: dir, at: at, asked: make(map[string]bool), model: llmtest.Start()}
	l.model.Answer(l.turn)
	l.http = &http.Server{Handler: http.HandlerFunc(l.serve), ReadHeaderTimeout: time.Minute}
	go l.http.Serve(at) //nolint:errcheck // it ends with Close
	return l, nil
}

// Addresses says where the ledger listens.
func (l *Ledger) Addresses() Addresses {
	return Addresses{HTTP: l.at.Addr().String(), Model: l.model.URL}
}

// Close ends the ledger. The error names the requests to the model that broke
// a rule of its wire.
func (l *Ledger) Close() error {
	err := l.http.Close()
	l.model.Close()
	if problems := l.model.TakeProblems(); len(problems) > 0 {
		err = errors.Join(err, errors.New(strings.Join(problems, "\n")))
	}
	return err
}

// serve answers a request of the flow's.
func (l *Ledger) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	run, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if err != nil || !ok {
		http.Error(w, "expected /WHO/NAME", http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if r.Method == http.MethodGet { // which has none of its own
		key = run + "/" + r.Header.Get("X-Effect")
	}
	status := http.StatusOK
	if strings.HasPrefix(name, "flaky") && l.isFirst(key) {
		status = http.StatusServiceUnavailable
	}
	a := Ask{Key: key, What: r.Method + " " + name, Digest: digest(r.Method, r.URL.RequestURI(), string(body)), Status: status}
	if err := l.record(a); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if strings.HasPrefix(name, "slow") {
		l.wait(r)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	answer := map[string]string{"name": name, "receipt": digest(r.Method, name, string(body))[:8]}
	_ = json.NewEncoder(w).Encode(answer) // the client may have gone
}

func (l *Ledger) wait(r *http.Request) {
	t := time.NewTimer(answerDelay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

// turn answers a request to the model.
func (l *Ledger) turn(r *llmtest.Request) llmtest.Turn {
	a := Ask{Key: r.Key, What: r.Model, Digest: digest(string(r.Body)), Status: http.StatusOK}
	if err := l.record(a); err != nil {
		return llmtest.Turn{Failure: &llmtest.Failure{Status: http.StatusBadRequest, Message: err.Error()}}
	}
	var said []string
	for _, m := range r.Messages {
		if m.Role == convo.User || m.Role == convo.Tool {
			said = append(said, m.Text)
		}
	}
	last := r.Messages[len(r.Messages)-1]
	if list, ok := strings.CutPrefix(last.Text, "call "); ok && last.Role == convo.User {
		return llmtest.Turn{Calls: l.calls(r.Key, list), Usage: llm.Usage{Input: 10, Output: 5}}
	}
	// All that was said so far, so that a history that differs shows.
	return llmtest.Turn{
		Text: fmt.Sprintf("%d heard: %s", len(r.Messages), strings.Join(said, " / ")), Piece: 16,
		Usage: llm.Usage{Input: 10, Output: 5},
	}
}

// calls returns the calls of tools in a list such as "helper@ada note:desk": names, and what the argument who is. A call with "@"
// also has the argument base, the address of the run.
func (l *Ledger) calls(key, list string) (out []convo.Call) {
	run, _, _ := strings.Cut(key, "/")
	for i, call := range strings.Fields(list) {
		name, who, _ := strings.Cut(call, ":")
		arguments := fmt.Sprintf(`{"who":%q}`, who)
		if short, at, ok := strings.Cut(call, "@"); ok {
			name, arguments = short, fmt.Sprintf(`{"base":"http://%s/%s","who":%q}`, l.at.Addr(), run, at)
		}
		out = append(out, convo.Call{ID: fmt.Sprint("call", i), Name: name, Arguments: arguments})
	}
	return out
}

// isFirst reports whether a key is new.
func (l *Ledger) isFirst(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked[key] {
		return false
	}
	l.asked[key] = true
	return true
}

// record writes an ask to the file of the tree of runs that its key names; it is on
// the disk when note returns.
func (l *Ledger) record(a Ask) error {
	run, own, _ := strings.Cut(a.Key, "/")
	tree, _, _ := strings.Cut(run, ".") // a child's id begins with that of the tree
	if tree == "" || own == "" {
		return fmt.Errorf("the idempotency key %q is not a run's", a.Key)
	}
	a.At = time.Now().UnixMicro()
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(logOf(l.dir, tree), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

func logOf(dir, tree string) string { return filepath.Join(dir, filepath.Base(tree)+".asks") }

// ReadAsks returns what the ledger at dir was asked for by a run and the child
// runs below it, in order.
func ReadAsks(dir, tree string) ([]Ask, error) {
	f, err := os.Open(logOf(dir, tree))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	var asks []Ask
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var a Ask
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return nil, fmt.Errorf("ledger of %s: %w", tree, err)
		}
		asks = append(asks, a)
	}
	return asks, lines.Err()
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
