package main

import (
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/e2b"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/sandbox/starlark"
)

// executors run the code of action and decision nodes.
func (p *cli) executors(cfg *config.Config) []sandbox.Executor {
	list := make([]sandbox.Executor, 0, len(cfg.Executors.Order))
	for _, name := range cfg.Executors.Order {
		switch name {
		case config.ExecutorPython:
			list = append(list, python.New(pythonOptions(cfg.Executors.Python)))
		case config.ExecutorStarlark:
			list = append(list, starlark.New(p.sandboxes, starlark.Options{}))
		case config.ExecutorE2B:
			c := cfg.Executors.E2B
			list = append(list, e2b.New(e2b.Options{
				Key: c.Key.Value, API: c.URL, Sandbox: c.SandboxURL, Domain: c.Domain, Template: c.Template,
			}))
		}
	}
	return list
}

func pythonOptions(c config.Python) python.Options {
	return python.Options{
		Interpreter: c.Interpreter, Packages: c.Packages, Concurrent: c.Parallel,
		Limits: sandbox.Limits{Memory: c.Memory << 20},
	}
}

// roles are what this program does as a child of one of its executors.
func roles() []sandbox.ChildRole { return []sandbox.ChildRole{starlark.Role()} }
