package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm/openai"
)

// holdVar makes the process that childVar makes serve a model that answers when it is signalled.
const holdVar = "WEIR_BENCH_HOLD"

// holdMain serves a model on a port that the kernel chooses, which it writes to the standard
// output, until the standard input ends. GET /await?n=N returns when N more requests wait, and GET
// /release has them answered.
func holdMain(string) error {
	arrived, release := make(chan struct{}, 1<<20), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/await":
			n, _ := strconv.Atoi(r.FormValue("n"))
			for range n {
				<-arrived
			}
		case "/release":
			close(release)
		default:
			_, _ = io.Copy(io.Discard, r.Body) // what it says does not matter
			arrived <- struct{}{}
			<-release
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		}
	}))
	defer s.Close()
	fmt.Println(s.URL)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// heldServer is the model of another process.
type heldServer struct {
	b   *testing.B
	url string
}

func startHeld(b *testing.B) *heldServer {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"=hold", holdVar+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return &heldServer{b, strings.TrimSpace(line)}
}

// get asks the server over a connection of its own.
func (s *heldServer) get(path string) {
	s.b.Helper()
	t := &http.Transport{DisableKeepAlives: true}
	q, err := http.NewRequestWithContext(s.b.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.b.Fatal(err)
	}
	a, err := (&http.Client{Transport: t}).Do(q)
	if err != nil {
		s.b.Fatal(err)
	}
	_, err = io.Copy(io.Discard, a.Body)
	if err := errors.Join(err, a.Body.Close()); err != nil {
		s.b.Fatal(err)
	}
}

// await returns when n more requests wait.
func (s *heldServer) await(n int) { s.get("/await?n=" + strconv.Itoa(n)) }

// BenchmarkManyWaitingHTTP has runs wait for a model of another process over HTTP, and then as many
// requests of a bare client: what each takes in memory, and what a run takes above a request.
func BenchmarkManyWaitingHTTP(b *testing.B) {
	const n = 1000
	for b.Loop() {
		run, request := runsWaitingHTTP(b, n), requestsWaitingHTTP(b, n)
		b.ReportMetric(run, "B/run")
		b.ReportMetric(request, "B/request")
		b.ReportMetric(run-request, "B/above")
		b.ReportMetric(run/request, "run/request")
	}
}

func runsWaitingHTTP(b *testing.B, n int) float64 {
	b.Helper()
	s := startHeld(b)
	w, _ := openMany(b, weir.Options{Providers: map[string]weir.Provider{"p": openai.New(openai.Options{BaseURL: s.url + "/v1"})}})
	f := parse(b, w, "weir: 1\nname: asks\ncontext: {model: p/m}\nnodes: {a: {type: llmRequest, in: {message: hello}}}\n")
	all := startMany(b, w, f, 1) // loads what all share
	s.await(1)
	before := memoryInUse()
	all = append(all, startMany(b, w, f, n)...)
	s.await(n)
	took := (memoryInUse() - before) / float64(n)
	s.get("/release")
	for _, run := range all {
		if r, err := run.Wait(b.Context()); err != nil || r.Status != engine.Completed {
			b.Fatal(r.Error, err)
		}
	}
	return took
}

// requestsWaitingHTTP sends the same requests with nothing but a client of Go's.
func requestsWaitingHTTP(b *testing.B, n int) float64 {
	b.Helper()
	s := startHeld(b)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ended := make(chan error, n+1)
	send := func() {
		q, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true}`))
		if err == nil {
			var a *http.Response
			if a, err = (&http.Client{Transport: transport}).Do(q); err == nil {
				_, err = io.Copy(io.Discard, a.Body)
				_ = a.Body.Close() // it was read
			}
		}
		ended <- err
	}
	go send()
	s.await(1)
	before := memoryInUse()
	for range n {
		go send()
	}
	s.await(n)
	took := (memoryInUse() - before) / float64(n)
	s.get("/release")
	for range n + 1 {
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
	return took
}
