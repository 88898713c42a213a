// Package servertest opens servers for tests of the protocols that a server speaks, and runs
// the public clients of those protocols against them.
//
// It must not know any of the protocols.
package servertest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
	"github.com/weir-run/weir/llm/llmtest"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/server"
)

// Options of a Process.
type Options struct {
	// Flows are the served files by name. Their model is fake/m.
	Flows map[string]string
	// Faces add the routes under test.
	Faces []func(*server.Server)
	// Config is added to the configuration.
	Config string
	// Answer is what the model fake/m does; nil repeats the last message with the number of
	// messages it was sent.
	Answer func(*llmtest.Request) llmtest.Turn
	// Server has further options of the server.
	Server server.Options
	// Runner connects to the runner that Config names.
	Runner func(ctx context.Context) (runner.Scheduler, error)
}

// Process is a server with its database and a model, as `weir serve` wires it.
type Process struct {
	App    *app.App
	Server *server.Server
	Model  *llmtest.Server
	URL    string
	Dir    string

	t       *testing.T
	options Options
	ended   chan error
}

// Open serves flows until the test ends.
func Open(t *testing.T, o Options) *Process {
	t.Helper()
	p := &Process{t: t, Dir: t.TempDir(), Model: llmtest.Start(), options: o}
	t.Cleanup(p.Model.Close)
	if o.Answer == nil {
		o.Answer = Repeat
	}
	p.Model.Answer(o.Answer)
	p.write("config.yaml", "providers:\n  fake: {type: openai-compatible, baseURL: "+p.Model.URL+"}\n"+o.Config)
	flows := filepath.Join(p.Dir, "flows")
	p.must(os.Mkdir(flows, 0o700))
	for name, text := range o.Flows {
		p.write(filepath.Join("flows", name), text)
	}
	p.start()
	t.Cleanup(p.close)
	return p
}

// Restart stops the process without waiting for its runs, and starts it again with the same database, at another address.
func (p *Process) Restart() {
	p.t.Helper()
	p.close()
	p.start()
}

func (p *Process) start() {
	p.t.Helper()
	o, t := p.options, p.t
	served, err := app.LoadFlows(nil, filepath.Join(p.Dir, "flows"))
	p.must(err)
	cfg, err := config.Load(config.Options{Dir: p.Dir, UserDir: p.Dir, Env: func(string) (string, bool) { return "", false }})
	p.must(err)
	p.App, err = app.Open(t.Context(), app.Options{Config: cfg, Database: filepath.Join(p.Dir, "weir.db"), Recover: true, Flows: []*weir.Flow{}, Runner: o.Runner})
	p.must(err)
	o.Server.App, o.Server.Flows, o.Server.Logger = p.App, served, slog.New(slog.DiscardHandler)
	p.Server, err = server.New(t.Context(), o.Server)
	p.must(err)
	for _, face := range o.Faces {
		face(p.Server)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	p.must(err)
	p.URL = "http://" + l.Addr().String()
	p.ended = make(chan error, 1)
	go func() { p.ended <- p.Server.Serve(l) }()
}

// Repeat answers with the number of messages, without those of the system, and the text of
// the last one.
func Repeat(r *llmtest.Request) llmtest.Turn {
	n := 0
	for _, m := range r.Messages {
		if m.Role != convo.System {
			n++
		}
	}
	last := r.Messages[len(r.Messages)-1]
	return llmtest.Turn{Text: itoa(n) + ": " + last.Text, Usage: llm.Usage{Input: 10, Output: 2}}
}

func (p *Process) write(name, text string) {
	p.t.Helper()
	p.must(os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600))
}

func (p *Process) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *Process) close() {
	p.t.Helper()
	p.Server.Drain()
	if err := errors.Join(<-p.ended, p.App.Shutdown(0)); err != nil {
		p.t.Error(err)
	}
}

// Token makes a token of a user.
func (p *Process) Token(user string, scopes ...server.Scope) string {
	p.t.Helper()
	var names []string
	for _, s := range scopes {
		names = append(names, string(s))
	}
	secret, _, err := server.NewToken(context.Background(), p.App.Store, user, "test", names, 0)
	p.must(err)
	return secret
}
