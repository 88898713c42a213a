//go:build linux

package temporal_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/temporal"
)

var figures = flag.Bool("temporal.figures", false, "measure steps per second")

// TestFigures measures durable steps per second on Temporal, beside a plain workflow whose activities commit a row each to a
// database of the same kind, in the same minutes on the same machine.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("measures; it checks nothing: -temporal.figures")
	}
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			driver, plain := "sqlite", filepath.Join(t.TempDir(), "plain.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)"
			if name == "PostgreSQL" {
				s := pgtest.Start(t)
				w.database = s.URL(s.Address(), "")
				driver, plain = "pgx", w.database
			}
			w.worker(temporal.WorkerOptions{})
			for _, c := range []struct{ runs, steps int }{{1, 50}, {16, 20}} {
				byWeir := w.measureWeir(c.runs, c.steps)
				byHand := w.measurePlain(driver, plain, c.runs, c.steps)
				t.Logf("%s, %d at once, %d steps each: Weir %.0f steps/s, by hand %.0f steps/s", name, c.runs, c.steps, byWeir, byHand)
			}
		})
	}
}

// measureWeir returns the steps per second of runs of a chain of nodes with an effect each.
func (w *world) measureWeir(runs, steps int) float64 {
	w.t.Helper()
	x := w.client()
	var b strings.Builder
	b.WriteString("weir: 1\nname: chain\nnodes:\n  n0: {type: note, in: {value: 1}}\n")
	for i := range steps - 1 {
		fmt.Fprintf(&b, "  n%d: {type: note, in: {value: \"{{ n%d.receipt }}\"}}\n", i+1, i)
	}
	fmt.Fprintf(&b, "outputs: {v: \"{{ n%d.receipt }}\"}\n", steps-1)
	f := w.flow(x, b.String())
	begun := time.Now()
	var wg sync.WaitGroup
	for range runs {
		wg.Go(func() {
			r, err := x.Start(context.Background(), f, weir.Start{})
			if err == nil {
				_, err = r.Wait(context.Background())
			}
			if err != nil {
				w.t.Error(err)
			}
		})
	}
	wg.Wait()
	return float64(runs*steps) / time.Since(begun).Seconds()
}

// measurePlain returns the steps per second of workflows written by hand.
func (w *world) measurePlain(driver, database string, runs, steps int) float64 {
	w.t.Helper()
	db, err := sql.Open(driver, database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if driver == "sqlite" {
		db.SetMaxOpenConns(1)
	}
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS plain_step (run text, step integer, value text)"); err != nil {
		w.t.Fatal(err)
	}
	queue := fmt.Sprintf("%s-plain-%d", w.queue, runs)
	c := w.sdk()
	k := worker.New(c, queue, worker.Options{})
	k.RegisterActivity(&plainSteps{db, driver})
	k.RegisterWorkflowWithOptions(plainWorkflow, workflow.RegisterOptions{Name: "plain"})
	if err := k.Start(); err != nil {
		w.t.Fatal(err)
	}
	defer k.Stop()
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			id := fmt.Sprintf("%s-%d", queue, i)
			r, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, "plain", id, steps)
			if err == nil {
				err = r.Get(context.Background(), nil)
			}
			if err != nil {
				w.t.Error(err)
			}
		})
	}
	wg.Wait()
	return float64(runs*steps) / time.Since(begun).Seconds()
}

// plainSteps has the activity of the workflow by hand: the effect and its row.
type plainSteps struct {
	db     *sql.DB
	driver string
}

// Step commits one row.
func (p *plainSteps) Step(ctx context.Context, run string, step int) (string, error) {
	statement := "INSERT INTO plain_step VALUES (?, ?, ?)"
	if p.driver == "pgx" {
		statement = "INSERT INTO plain_step VALUES ($1, $2, $3)"
	}
	_, err := p.db.ExecContext(ctx, statement, run, step, "receipt")
	return "receipt", err
}

func plainWorkflow(ctx workflow.Context, run string, steps int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for i := range steps {
		var p *plainSteps
		if err := workflow.ExecuteActivity(ctx, p.Step, run, i).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}
