package main

import (
	"github.com/weir-run/weir/cmd/weir/config"
	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/sandbox/starlark"
)

// executors run the code of action and decision nodes.
func (p *program) executors(*config.Config) []sandbox.Executor {
	return []sandbox.Executor{
		python.New(python.Options{}),
		starlark.New(p.sandboxes, starlark.Options{}),
	}
}

// roles are what this program does as a child of one of its executors.
func roles() []sandbox.Role { return []sandbox.Role{starlark.Role()} }
