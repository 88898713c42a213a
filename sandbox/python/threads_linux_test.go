package python_test

import (
	"testing"

	"github.com/weir-run/weir/sandbox"
	"github.com/weir-run/weir/sandbox/python"
)

// TestCodeHasAllItsThreadsAtTheDefaultMemory starts as many threads as the documentation
// promises, which all run at once, and one more.
func TestCodeHasAllItsThreadsAtTheDefaultMemory(t *testing.T) {
	t.Parallel()
	ready(t)
	x := python.New(python.Options{})
	r, err := x.Run(t.Context(), &sandbox.Job{Code: `
import os, threading
done, started, error = threading.Event(), [], ''
def work():
    data = bytearray(10000)
    done.wait()
try:
    for _ in range(100):
        t = threading.Thread(target=work)
        t.start()
        started.append(t)
except RuntimeError as e:
    error = str(e)
done.set()
for t in started:
    t.join()
context['threads'], context['error'], context['environment'] = len(started) + 1, error, dict(os.environ)
`})
	if err != nil {
		t.Fatal(err)
	}
	if r.Set["threads"] != int64(python.DefaultThreads) || r.Set["error"] == "" {
		t.Errorf("%v threads, then %q; expected %d", r.Set["threads"], r.Set["error"], python.DefaultThreads)
	}
	if env, _ := r.Set["environment"].(map[string]any); len(env) != 0 {
		t.Errorf("the environment is %v", env)
	}
}
