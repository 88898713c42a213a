package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-run/weir/server"
)

//go:embed demo/*.yaml
var demoFiles embed.FS

// serveDemo serves two flows whose model is a script, from a folder that is removed at the end,
// with a database of its own.
func (p *cli) serveDemo(ctx context.Context, o *serveOptions) error {
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system cleans its temporary folder
	entries, err := demoFiles.ReadDir("demo")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := demoFiles.ReadFile("demo/" + e.Name())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	p.db = filepath.Join(dir, "weir.db")
	o.demo = false
	o.started = p.printDemo
	return p.serve(ctx, []string{dir}, o)
}

// printDemo prints how each protocol is tried, with a token that clients which need one send.
func (p *cli) printDemo(ctx context.Context, a *application, url string) error {
	token, _, err := server.NewToken(ctx, a.Store, "demo", "demo", []string{"read", "start", "answer"}, 0)
	if err != nil {
		return err
	}
	p.notef(`weir: the model is a script, and everything is deleted when the server stops
  page and API   %[1]s  (operations: %[1]s/docs)
  token          %[2]s
  OpenAI         curl %[1]s/v1/chat/completions -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' -d '{"model":"talk","messages":[{"role":"user","content":"Is there a berth?"}]}'
  MCP            %[1]s/mcp
  AG-UI          %[1]s/agui/order`, url, token)
	return nil
}

// checkDemo refuses what does not go with --demo.
func checkDemo(paths []string, db string) error {
	var err error
	if len(paths) > 0 {
		err = usagef("--demo serves flows of its own: leave out %s", paths[0])
	}
	if db != "" {
		err = errors.Join(err, usagef("--demo has a database of its own: leave out --db"))
	}
	return err
}
