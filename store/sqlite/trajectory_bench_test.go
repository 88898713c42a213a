package sqlite

import (
	"fmt"
	"os"
	"testing"

	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/tables"
)

// trodden returns a round of ten nodes whose numbers follow those of the round before.
func trodden(round int) trajectory.Record {
	r := trajectory.Record{
		Key:   trajectory.Key{User: "ann", Session: "s", Round: round},
		First: map[trajectory.Type]int{trajectory.Query: round - 1, trajectory.Action: 8 * (round - 1), trajectory.State: round - 1},
	}
	add := func(typ trajectory.Type, i int, relation trajectory.Relation) {
		n := trajectory.Node{
			ID: trajectory.MakeID(typ, r.First[typ]+i), Type: typ, Round: round, Version: 1, Name: "look_up_order",
			Attributes: trajectory.Attributes{"text": "as long as what a tool is called with and what it says, more or less", "kind": "call"},
		}
		if len(r.Nodes) > 0 {
			r.Edges = append(r.Edges, trajectory.Edge{Source: r.Nodes[len(r.Nodes)-1].ID, Target: n.ID, Relationship: relation})
		}
		r.Nodes = append(r.Nodes, n)
	}
	add(trajectory.Query, 0, "")
	for i := range 8 {
		add(trajectory.Action, i, trajectory.Generates)
	}
	add(trajectory.State, 0, trajectory.HasConclusion)
	r.Initial, r.Current = r.Nodes[0].ID, []trajectory.ID{r.Nodes[9].ID}
	return r
}

// BenchmarkTrajectory opens and saves rounds after 10 and after 5,000 of the
// session.
func BenchmarkTrajectory(b *testing.B) {
	for _, x := range []struct {
		name string
		open func(b *testing.B) (s trajectory.Storage, begin func())
	}{
		{"sqlite", func(b *testing.B) (trajectory.Storage, func()) {
			b.Helper()
			s := openWithTrajectories(b)
			return tables.New(s.Trajectories()), func() {
				if _, err := s.conn.ExecContext(b.Context(), "PRAGMA synchronous = FULL"); err != nil {
					b.Fatal(err)
				}
			}
		}},
		{"files", func(b *testing.B) (trajectory.Storage, func()) {
			b.Helper()
			dir := b.TempDir()
			fill := &filled{Storage: files.New(dir, files.Options{NoSync: true})}
			return fill, func() { fill.Storage = files.New(dir, files.Options{}) }
		}},
		{"memory", func(*testing.B) (trajectory.Storage, func()) {
			return tables.New(tables.NewMemory()), func() {}
		}},
	} {
		for _, rounds := range []int{10, 5000} {
			s, begin := x.open(b)
			for n := range rounds {
				if err := s.Save(b.Context(), trodden(n+1)); err != nil {
					b.Fatal(err)
				}
			}
			begin()
			b.Run(fmt.Sprint(x.name, "/open/", rounds), func(b *testing.B) {
				repeat(b, func(int) (got, want int, err error) { return openRound(b, s, rounds+1) })
			})
			next := rounds
			b.Run(fmt.Sprint(x.name, "/save new/", rounds), func(b *testing.B) {
				repeat(b, func(int) (got, want int, err error) {
					next++
					return 0, 0, s.Save(b.Context(), trodden(next))
				})
			})
			b.Run(fmt.Sprint(x.name, "/save again/", rounds), func(b *testing.B) {
				repeat(b, func(int) (got, want int, err error) { return 0, 0, s.Save(b.Context(), trodden(rounds)) })
			})
		}
	}
}

// filled is a storage that is filled in another way than it is measured.
type filled struct{ trajectory.Storage }

// openRound opens a round, with a book as a process would that has just begun.
func openRound(b *testing.B, s trajectory.Storage, round int) (got, want int, err error) {
	b.Helper()
	r, release, err := trajectory.NewRecorderPool(s, nil).Open(b.Context(), trajectory.Key{User: "ann", Session: "s", Round: round})
	if err != nil {
		return 0, 0, err
	}
	got = r.Record().First[trajectory.Action]
	return got, 8 * (round - 1), release(b.Context())
}

// BenchmarkTrajectorySize reports what a round of ten nodes takes in the file
// next to what the same takes as JSON.
func BenchmarkTrajectorySize(b *testing.B) {
	const rounds = 500
	for b.Loop() {
		s := openWithTrajectories(b)
		if err := s.vacuum(b.Context()); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(s.path)
		if err != nil {
			b.Fatal(err)
		}
		text := 0
		for n := range rounds {
			r := trodden(n + 1)
			links, err := r.NodeLink()
			if err != nil {
				b.Fatal(err)
			}
			text += len(links)
			if err := tables.New(s.Trajectories()).Save(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(closedSize(b, s)-info.Size())/rounds, "B/round")
		b.ReportMetric(float64(text)/rounds, "JSON-B/round")
	}
}
