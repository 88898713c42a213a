package trajectory_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// FuzzReadRecord: what is read from outside bytes is a round that can be
// written, read again as the same, joined and cut to its active branches.
func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"directed":true,"graph":{"session":"s","round":1},"nodes":[{"id":"Query(query00000)","type":"Query","round":1}],"edges":[]}`),
		[]byte(`{"session":"s","round":1,"initial_pt":"Query(query00000)","current_pt":["Query(query00000)"]}`))
	f.Add([]byte(`{"directed":true,"graph":{"session":"s","round":1},"nodes":[{"id":"State(state00007)","type":"State","round":1,"version":2,
		"history":{"1":{"old":{"name":1,"x":null},"added":["y"]}},"attributes":{"y":1e3}}]}`),
		[]byte(`{"session":"s","round":1,"first":{"State":7},"messages":[{"role":"user","text":"x"}]}`))
	f.Fuzz(func(t *testing.T, graph, meta []byte) {
		r, err := trajectory.ReadRecord(graph, meta)
		if err != nil {
			if !errors.Is(err, trajectory.ErrRecord) && !errors.Is(err, trajectory.ErrKey) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		again, links := rewritten(t, r)
		if !reflect.DeepEqual(again, r) {
			t.Errorf("read again is\n%+v, and was\n%+v", again, r)
		}
		if _, second := rewritten(t, again); !bytes.Equal(links, second) {
			t.Error("written twice it differs")
		}
		g, err := trajectory.JoinRounds(r)
		if err != nil || !g.Acyclic() || !g.Active().Acyclic() {
			t.Errorf("joined: %v", err)
		}
		for _, n := range r.Nodes {
			n.AtVersion(1)
		}
		_ = g.Replay()
	})
}

func rewritten(t *testing.T, r trajectory.Record) (trajectory.Record, []byte) {
	t.Helper()
	links, err := r.NodeLink()
	if err != nil {
		t.Fatal(err)
	}
	meta, err := r.Meta()
	if err != nil {
		t.Fatal(err)
	}
	again, err := trajectory.ReadRecord(links, meta)
	if err != nil {
		t.Fatalf("what was read cannot be read again: %v", err)
	}
	return again, links
}

func TestRecordingRoundTrips(t *testing.T) {
	t.Parallel()
	r := trajectorytest.Sample(t, round(1), 3)
	if again, _ := rewritten(t, r); !reflect.DeepEqual(again, r) {
		t.Errorf("read again is\n%+v, and was\n%+v", again, r)
	}
}
