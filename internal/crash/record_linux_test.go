package crash_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/crash"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// record is what a run's journal holds at one moment.
type record struct {
	lines     []string       // the events, as --events prints them
	effects   map[string]int // how often an effect's end is journaled, by key
	done      map[string]int // the same, successes alone
	completed map[string]int // nodes, by path
	answered  map[string]int // questions, by id
	end       string         // kind of the last event
	asks      []crash.Ask    // what the ledger had been asked for by then
}

// look reads the journal from a copy, so that the binary finds the files as
// they were left.
func (j *journey) look(tb testing.TB) (*record, error) {
	tb.Helper()
	r := &record{
		effects: make(map[string]int), done: make(map[string]int),
		completed: make(map[string]int), answered: make(map[string]int),
	}
	if _, err := os.Stat(j.db()); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	copied := filepath.Join(j.dir, "copy")
	if err := errors.Join(os.RemoveAll(copied), os.Mkdir(copied, 0o700)); err != nil {
		return nil, err
	}
	path := filepath.Join(copied, "weir.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(j.db()+suffix, path+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err := sound(tb.Context(), path); err != nil {
		return nil, err
	}
	s, err := sqlite.Open(tb.Context(), path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // only read
	if _, err := s.Run(tb.Context(), j.run); errors.Is(err, store.ErrNotFound) {
		return r, nil
	}
	for c, err := range s.Commits(tb.Context(), j.run, 0) {
		if err != nil {
			return nil, err
		}
		if err := r.add(j.run, c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// add takes a commit in.
func (r *record) add(run string, c engine.Commit) error {
	for i, e := range c.Events {
		list, err := engine.EncodeEvents(nil, []engine.Event{e})
		if err != nil {
			return err
		}
		r.lines = append(r.lines, fmt.Sprintf(`{"run":%q,"number":%d,"at":%d,%s`+"\n",
			run, c.First+int64(i), c.At, list[2:len(list)-1]))
		r.end = e.Kind()
		switch e := e.(type) {
		case *engine.EffectCompleted:
			r.effects[e.Key]++
			if e.Error == nil {
				r.done[e.Key]++
			}
		case *engine.NodeCompleted:
			r.completed[e.Path]++
		case *engine.InterruptAnswered:
			r.answered[e.ID]++
		}
	}
	return nil
}

// sound asks SQLite whether a database is whole.
func sound(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // a copy
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&verdict); err != nil {
		return err
	}
	var dangling int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&dangling); err != nil {
		return err
	}
	if verdict != "ok" || dangling > 0 {
		return fmt.Errorf("the database is damaged: %s, %d dangling references", verdict, dangling)
	}
	return nil
}

// check holds a finished journey against the undisturbed one.
func (j *journey) check(tb testing.TB, calm *journey) error {
	tb.Helper()
	r, err := j.look(tb)
	if err != nil {
		return err
	}
	if r.asks, err = crash.ReadAsks(j.rig.asks, j.run); err != nil {
		return err
	}
	errs := []error{j.early, j.kept(r), j.quiet(r), j.asked(r), r.once(), r.balance(len(j.killed))}
	if r.end != "run.completed" || j.last.Status != "completed" {
		errs = append(errs, fmt.Errorf("the journal ends with %s, the binary says %q", r.end, j.last.Status))
	}
	if calm != nil {
		errs = append(errs, j.same(r, calm))
	}
	j.known = r
	return errors.Join(errs...)
}

// once checks that nothing is in the journal twice.
func (r *record) once() error {
	for what, counts := range map[string]map[string]int{
		"node": r.completed, "effect": r.done, "answer to": r.answered,
	} {
		for key, n := range counts {
			if n != 1 {
				return fmt.Errorf("the %s %s is in the journal %d times", what, key, n)
			}
		}
	}
	return nil
}

// balance checks the ledger against the journal: each ask is in the journal,
// but for one a key and kill; each effect in the journal was asked for; a key
// stands for one request and a request for one key.
func (r *record) balance(kills int) error {
	asks, requests, keys := map[string]int{}, map[string]string{}, map[string]string{}
	for _, a := range r.asks {
		asks[a.Key]++
		if d, ok := requests[a.Key]; ok && d != a.Digest {
			return fmt.Errorf("two requests under the key %s", a.Key)
		}
		if k, ok := keys[a.Digest]; ok && k != a.Key {
			return fmt.Errorf("one request under the keys %s and %s", k, a.Key)
		}
		requests[a.Key], keys[a.Digest] = a.Digest, a.Key
	}
	for key, n := range asks {
		if n > r.effects[key]+kills {
			return fmt.Errorf("%s was asked for %d times: %d ends are in the journal, after %d kills", key, n, r.effects[key], kills)
		}
	}
	for key, n := range r.effects {
		if asks[key] < n && !inside(key) {
			return fmt.Errorf("the journal has %d ends of %s, which was asked for %d times", n, key, asks[key])
		}
	}
	return nil
}

// inside reports whether an effect stays inside the process: those of the cache
// in the flow fan.
func inside(key string) bool { return strings.HasPrefix(key, "kept/") }

// again counts what was asked for more often than the journal has an end of it.
func (r *record) again() int {
	n := len(r.asks)
	for key, ends := range r.effects {
		if !inside(key) {
			n -= ends
		}
	}
	return n
}

// quiet checks that no effect whose result was in the journal at the last kill
// was asked for afterwards.
func (j *journey) quiet(r *record) error {
	if j.known == nil {
		return nil
	}
	for _, a := range r.asks[min(len(j.known.asks), len(r.asks)):] {
		if j.known.done[a.Key] > 0 {
			return fmt.Errorf("%s was in the journal when the process was killed, and was asked for again", a.Key)
		}
	}
	return nil
}

// asked checks that an effect that must not be repeated blindly was asked for
// again only where a person said so.
func (j *journey) asked(r *record) error {
	for _, key := range j.way.careful {
		path, _, _ := strings.Cut(key, "/request#")
		asks, told := 0, 0
		for _, a := range r.asks {
			if a.Key == key {
				asks++
			}
		}
		for id, n := range r.answered {
			if strings.HasPrefix(id, path+":effect.") {
				told += n
			}
		}
		if asks == 0 || asks > 1+told {
			return fmt.Errorf("%s was asked for %d times, and a person has said %d times to do it again", key, asks, told)
		}
	}
	return nil
}

// same checks that the run gave what the undisturbed one did.
func (j *journey) same(r *record, calm *journey) error {
	if string(j.last.Outputs) != string(calm.last.Outputs) {
		return fmt.Errorf("the outputs are %s, undisturbed they are %s", j.last.Outputs, calm.last.Outputs)
	}
	for what, sets := range map[string][2]map[string]int{
		"nodes":   {r.completed, calm.known.completed},
		"effects": {r.done, calm.known.done},
	} {
		got, want := slices.Sorted(maps.Keys(sets[0])), slices.Sorted(maps.Keys(sets[1]))
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: %s, undisturbed %s", what, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	return nil
}
