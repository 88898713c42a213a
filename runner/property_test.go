package runner

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRandomFlowReplaysExactlyAtEveryCommit is the simulation with flows
// that rapid draws, so that what fails is shrunk to a small flow.
func TestRandomFlowReplaysExactlyAtEveryCommit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "d") }
		w := &switchedWorld{}
		g := randomGraph(d, 6, 2, true, "")
		p, ok := simProgram(t, g, w)
		if !ok {
			rt.Skip("not a valid flow")
		}
		c := &simCase{world: w, program: p, expected: newExpected(g, false), forced: newExpected(g, true)}
		seed := rapid.Uint64Range(1, 1<<40).Draw(rt, "seed")
		report, err := c.run(seed, true)
		if err != nil {
			rt.Fatalf("%s\n%s\n%v", g.file(), journalText(report.Commits), err)
		}
	})
}
