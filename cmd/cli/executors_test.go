package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/sandbox/e2b/e2btest"
)

const cloudFlow = `
weir: 1
name: cloud
inputs: {n: {type: number, required: true}}
nodes:
  double:
    type: action
    in: {n: "{{ run.inputs.n }}"}
    with: {executor: e2b, code: "context['twice'] = inputs['n'] * 2\nprint('a trace')"}
  size:
    type: decision
    after: double
    with: {executor: e2b, branches: [large, small], code: "context['branch_decision'] = 'large' if context['twice'] > 10 else 'small'"}
outputs: {twice: "{{ state.twice }}"}
`

func TestCodeRunsInConfiguredCloud(t *testing.T) {
	cloud := e2btest.Serve(t)
	flow := filepath.Join(t.TempDir(), "cloud.yaml")
	if err := os.WriteFile(flow, []byte(cloudFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	weir := func(args ...string) (int, string) {
		t.Helper()
		var out, stderr strings.Builder
		code := command(t.Context(), args, terminal{strings.NewReader(""), &out, &stderr})
		return code, out.String() + stderr.String()
	}
	t.Setenv("E2B_API_KEY", "")
	if code, said := weir("run", flow, "-i", "n=7"); code == 0 || !strings.Contains(said, "e2b") {
		t.Errorf("without a key it ends with %d: %s", code, said)
	}
	t.Setenv("E2B_API_KEY", e2btest.Key)
	t.Setenv("E2B_API_URL", cloud.URL)
	t.Setenv("E2B_SANDBOX_URL", cloud.URL)
	if code, said := weir("run", flow, "-i", "n=7", "--id", "there"); code != 0 || !strings.Contains(said, "twice: 14") {
		t.Errorf("it ends with %d: %s", code, said)
	}
	made := cloud.Created()
	if len(made) != 2 || cloud.Deleted() != 2 {
		t.Fatalf("%d sandboxes made, %d deleted", len(made), cloud.Deleted())
	}
	_, chain := weir("show", "there", "--chain", "--json")
	if !strings.Contains(chain, made[0].ID) || !strings.Contains(chain, made[1].ID) {
		t.Errorf("the record does not name the sandboxes: %s", chain)
	}
	if _, said := weir("doctor"); !strings.Contains(said, "key in E2B_API_KEY") || strings.Contains(said, e2btest.Key) {
		t.Errorf("the doctor says %s", said)
	}
}
