package history_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/tables"
)

const chatFlow = `
weir: 1
name: chat
context: {model: puppet/m}
inputs: {message: {type: text, required: true}}
nodes:
  say: {type: llmRequest, in: {message: "{{ run.inputs.message }} !look !look+look", tools: [look]}}
outputs: {text: "{{ say.text }}"}
`

// chatOn makes chats whose every round calls three tools; kept says how trajectories
// are.
func chatOn(b *testing.B, s weir.Store, kept trajectory.Storage) func() *weir.Session {
	b.Helper()
	o := weir.Options{Store: s, Tools: commandTools(), Providers: map[string]weir.Provider{"puppet": &commandModel{seen: map[string]bool{}}}}
	if kept != nil {
		o.Trajectories = &weir.TrajectoryOptions{Storage: kept}
	}
	w, err := weir.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			b.Log(err)
		}
	})
	f, err := w.Parse("chat.yaml", []byte(chatFlow))
	if err != nil {
		b.Fatal(err)
	}
	return func() *weir.Session {
		session, err := w.Session(b.Context(), f, weir.SessionOptions{User: "ann", New: true})
		if err != nil {
			b.Fatal(err)
		}
		return session
	}
}

func chatRound(b *testing.B, s *weir.Session, i int) {
	b.Helper()
	turn, err := s.Send(b.Context(), fmt.Sprint("message ", i), weir.SendOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if state, err := turn.Wait(b.Context()); err != nil || state.Status != engine.Completed {
		b.Fatalf("%s %v %v", state.Status, state.Error, err)
	}
}

// BenchmarkARoundOfAChatWithTools is what keeping trajectories costs: rounds that are
// kept and rounds that are not alternate, and the ratio of their times is reported.
func BenchmarkARoundOfAChatWithTools(b *testing.B) {
	for _, name := range []string{"memory", "sqlite/files", "sqlite/tables", "sqlite/both"} {
		b.Run(name, func(b *testing.B) {
			var chats [2]func() *weir.Session
			for i := range chats {
				s, storage := benchStore(b, name)
				if i == 0 {
					storage = nil
				}
				chats[i] = chatOn(b, s, storage)
			}
			var sessions [2]*weir.Session
			var took [2]time.Duration
			for i := 0; b.Loop(); i++ {
				if i%100 == 0 {
					sessions = [2]*weir.Session{chats[0](), chats[1]()}
				}
				for j, s := range sessions {
					from := time.Now()
					chatRound(b, s, i)
					took[j] += time.Since(from)
				}
			}
			b.ReportMetric(float64(took[1])/float64(took[0]), "times")
			b.ReportMetric(float64(took[0].Microseconds())/float64(b.N), "µs/plain")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N), "µs/kept")
		})
	}
}

// benchStore returns a store and where its trajectories are stored.
func benchStore(b *testing.B, name string) (weir.Store, trajectory.Storage) {
	b.Helper()
	if name == "memory" {
		return memory.New(), memoryTables()
	}
	db := openFile(b, filepath.Join(b.TempDir(), "weir.db"))
	dir, rows := files.New(b.TempDir(), files.Options{}), tables.New(db.Trajectories())
	return db, map[string]trajectory.Storage{"sqlite/files": dir, "sqlite/tables": rows, "sqlite/both": trajectory.Mirrored{First: dir, Second: rows}}[name]
}

// BenchmarkTheTrajectoryOfASession makes the graph of a session from its journal.
func BenchmarkTheTrajectoryOfASession(b *testing.B) {
	for _, rounds := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(rounds), func(b *testing.B) {
			db := openFile(b, filepath.Join(b.TempDir(), "weir.db"))
			session := chatOn(b, unclosedStore{db}, nil)()
			for i := range rounds {
				chatRound(b, session, i)
			}
			w, err := weir.Open(weir.Options{Store: unclosedStore{db}, Tools: commandTools()})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				g, err := w.Trajectory(b.Context(), session.ID, 0)
				if err != nil || len(g.Rounds) != rounds {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*rounds), "µs/round")
		})
	}
}
