package starlark_test

import (
	"os"
	"testing"

	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/sandboxtest"
	"github.com/weir-run/weir/sandbox/starlark"
)

// self is how the test binary starts itself again.
var self sandbox.Self //nolint:gochecknoglobals // only TestMain can know it

func TestMain(m *testing.M) {
	self = sandbox.Begin(starlark.Role())
	os.Exit(m.Run())
}

func TestStarlarkDoesWhatEveryExecutorDoes(t *testing.T) {
	sandboxtest.Suite(t, func(*testing.T) sandbox.Executor { return starlark.New(self, starlark.Options{}) }, sandboxtest.Starlark())
}
