package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/engine"
)

// configured reads a configuration file with this text, in an empty environment.
func configured(t *testing.T, text string) *config.Config {
	t.Helper()
	file := write(t, filepath.Join(t.TempDir(), "config.yaml"), text)
	cfg, err := config.Load(config.Options{File: file, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestOpenRunsAFlowAndShutdownCanBeRepeated(t *testing.T) {
	t.Parallel()
	a, err := Open(t.Context(), Options{Config: configured(t, "parallel: 2\n"), Database: filepath.Join(t.TempDir(), "weir.db")})
	if err != nil {
		t.Fatal(err)
	}
	f, err := a.Parse("f.yaml", []byte("weir: 1\nname: f\nnodes: {a: {type: manualInput, with: {text: hello}}}\noutputs: {x: \"{{ a.text }}\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := a.Start(t.Context(), f, weir.Start{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := run.Wait(t.Context()); err != nil || r.Status != engine.Completed {
		t.Errorf("%v, %v", r.Status, err)
	}
	if err := errors.Join(a.Shutdown(0), a.Shutdown(0)); err != nil {
		t.Error(err)
	}
}

// TestMistakesAreUsageErrorsAndCreateNoDatabase covers the mistakes that Open finds before
// it opens the store.
func TestMistakesAreUsageErrorsAndCreateNoDatabase(t *testing.T) {
	t.Parallel()
	anyTool := func() *weir.Flow {
		f := filepath.Join(t.TempDir(), "f.yaml")
		text := "weir: 1\nname: f\nnodes: {t: {type: tools, with: {tools: [\"mcp:gone/x\"]}}}\n"
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		flow, _, err := LoadFlow(f)
		if err != nil {
			t.Fatal(err)
		}
		return flow
	}()
	for name, o := range map[string]Options{
		"record and replay":      {Config: configured(t, "parallel: 2\n"), Record: "a", Replay: "b"},
		"no recording":           {Config: configured(t, "parallel: 2\n"), Replay: filepath.Join(t.TempDir(), "gone")},
		"a key that is not set":  {Config: configured(t, "tools: {mcp: {gone: {command: gone, tools: [x], env: {KEY: {env: NOT_SET}}}}}\n"), Flow: anyTool},
		"a tool's flow is gone":  {Config: configured(t, "tools: {flows: [{name: gone, file: gone.yaml}]}\n"), Flow: anyTool},
		"a private address list": {Config: configured(t, "http: {allowPrivate: [\"not an address\"]}\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Database = filepath.Join(t.TempDir(), "weir.db")
			a, err := Open(t.Context(), o)
			if a != nil {
				t.Cleanup(func() { _ = a.Shutdown(0) })
			}
			if _, ok := errors.AsType[*UsageError](err); !ok {
				t.Errorf("got %T: %v", err, err)
			}
			if _, err := os.Stat(o.Database); err == nil {
				t.Error("there is a database")
			}
		})
	}
}

// write writes a file and returns its path.
func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
