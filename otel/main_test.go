package otel_test

import (
	"os"
	"testing"

	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/starlark"
)

// self is how the test binary starts itself again to run Starlark code.
var self sandbox.SelfCommand

func TestMain(m *testing.M) {
	self = sandbox.RunChildRole(starlark.Role())
	os.Exit(m.Run())
}
