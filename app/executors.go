package app

import (
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/e2b"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/sandbox/starlark"
)

// Executors returns the configured executors of the code of action and decision nodes.
// self starts this program again for those that run code in a child process.
func Executors(cfg *config.Config, self sandbox.SelfCommand) []sandbox.Executor {
	list := make([]sandbox.Executor, 0, len(cfg.Executors.Order))
	for _, name := range cfg.Executors.Order {
		switch name {
		case config.ExecutorPython:
			list = append(list, python.New(pythonOptions(cfg.Executors.Python)))
		case config.ExecutorStarlark:
			list = append(list, starlark.New(self, starlark.Options{}))
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

// ChildRoles returns what this program does when an executor starts it as a child. main must
// pass them to sandbox.RunChildRole first.
func ChildRoles() []sandbox.ChildRole { return []sandbox.ChildRole{starlark.Role()} }
