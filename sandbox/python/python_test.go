package python_test

import (
	"testing"

	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/sandbox/sandboxtest"
)

func TestPythonExecutor(t *testing.T) {
	e := python.New(python.Options{})
	if err := e.Probe(t.Context()); err != nil {
		t.Skip(err)
	}
	sandboxtest.Suite(t, func(*testing.T) sandbox.Executor { return e }, sandboxtest.Python())
}
