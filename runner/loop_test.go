package runner

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/node/builtin"
)

const endlessLoop = `
weir: 1
name: endless
state: {last: {initial: 0}}
nodes:
  spin:
    type: loop
    with:
      until: outputs.n == LAST
      max: 1000000
      body:
        nodes:
          count: {type: transform, in: {index: "{{ inputs.index }}"}, with: {expr: inputs.index + 1}}
          odd: {type: decision, in: {n: "{{ count.value }}"}, with: {expr: "inputs.n % 2 == 0 ? 'no' : 'yes'", branches: ['yes', 'no']}}
          note: {type: transform, after: odd.yes, with: {expr: "'odd'"}}
        outputs: {n: "{{ count.value }}"}
outputs: {n: "{{ spin.n }}"}
`

// A loop without end is what must not grow: neither what the run holds in
// memory nor its checkpoint.
func TestLoopMemoryDoesNotGrowWithIterations(t *testing.T) {
	last := 100_000
	if testing.Short() {
		last = 10_000
	}
	p := endlessProgram(t, last)
	m := newMachine("r", p, &Services{})
	b := StartOptions{ID: "r"}
	if err := m.step(1, b.startedEvent(p, 1)); err != nil {
		t.Fatal(err)
	}
	type size struct{ heap, checkpoint int }
	var at1000, end size
	measure := func() size {
		var ms runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&ms)
		body, err := m.encodeCheckpoint()
		if err != nil || body == nil {
			t.Fatalf("no checkpoint: %v", err)
		}
		return size{int(ms.HeapAlloc), len(body)}
	}
	iterations := 0
	for !m.run.Status().Ended() {
		commit, _ := m.takeCommit()
		for _, e := range commit.Events {
			if _, done := e.(*engine.IterationCompleted); !done {
				continue
			}
			switch iterations++; iterations {
			case 1000:
				at1000 = measure()
			case last - 1000:
				end = measure()
			}
		}
		m.runOneAttempt(t)
	}
	if n, _ := m.run.Outputs().Get("n"); n != int64(last) {
		t.Fatalf("%s after %d iterations: %v", m.run.Status(), iterations, n)
	}
	t.Logf("%d events; heap and checkpoint after 1,000 iterations %+v, after %d %+v", m.run.Events(), at1000, last-1000, end)
	if end.heap > at1000.heap+256<<10 {
		t.Errorf("the heap grew from %d to %d bytes", at1000.heap, end.heap)
	}
	if end.checkpoint > at1000.checkpoint+200 {
		t.Errorf("the checkpoint grew from %d to %d bytes", at1000.checkpoint, end.checkpoint)
	}
}

// runOneAttempt runs an attempt that may run now.
func (m *machine) runOneAttempt(t *testing.T) {
	t.Helper()
	if len(m.direct) == 0 {
		starts, err := m.takeLaunchable(1)
		if err != nil {
			t.Fatal(err)
		}
		m.direct = append(m.direct, starts...)
	}
	a := m.direct[0]
	m.direct = m.direct[1:]
	a.io = refusingIO{}
	_, err := a.runNode()
	if err := m.applyOutcome(1, a, err, 0); err != nil {
		t.Fatal(err)
	}
}

func endlessProgram(t *testing.T, last int) *Program {
	t.Helper()
	c, err := node.NewCatalogue(builtin.Types()...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := flow.Parse("endless.yaml", []byte(strings.ReplaceAll(endlessLoop, "LAST", strconv.Itoa(last))), c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
