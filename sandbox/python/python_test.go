package python_test

import (
	"testing"

	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
	"github.com/weir-run/weir/sandbox/sandboxtest"
)

func TestPythonBehavesAsEveryExecutorDoes(t *testing.T) {
	e := python.New(python.Options{})
	sandboxtest.Suite(t, func(t *testing.T) sandbox.Executor { return e }, sandboxtest.Python())
}

func TestHello(t *testing.T) {
	e := python.New(python.Options{})
	r, err := e.Run(t.Context(), &sandbox.Job{Code: "import os\nprint(os.environ, os.getuid())\ncontext['a']=1\nprint(open('/proc/self/status').read())"})
	t.Logf("%+v %v", r, err)
}
