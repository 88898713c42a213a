//go:build unix

package postgres

import (
	"testing"

	"github.com/weir-run/weir/internal/pgtest"
)

// TestConnectionsCutDuringACommit cuts the connection after each number of bytes that a commit
// sends and receives, the COMMIT and its answer included.
func TestConnectionsCutDuringACommit(t *testing.T) {
	server := pgtest.Start(t)
	direct := server.Schema(t)
	p := pgtest.StartProxy(t, server.Address())
	s := openAt(t, server.URL(p.Address(), "&search_path=s1"), Options{MaxConnections: 1})
	w, err := newTestWriter(s, "r")
	if err != nil {
		t.Fatal(err)
	}
	step := 5
	if testing.Short() {
		step = 41
	}
	for _, up := range []bool{true, false} {
		cuts := 0
		for after := 0; ; after += step {
			for range 2 { // the statements are prepared
				if err := w.append(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			p.Arm(up, after)
			err := w.append(t.Context())
			cut := p.Disarm()
			if err != nil {
				t.Fatalf("cut after %d bytes (up %v): %v", after, up, err)
			}
			if !cut {
				break // the commit is shorter
			}
			cuts++
		}
		if cuts < 5 {
			t.Errorf("%d cuts", cuts)
		}
		t.Logf("up %v: %d cuts", up, cuts)
	}
	checkCommits(t, openAt(t, direct, Options{}), "r", w.seq)
}
