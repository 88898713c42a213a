package crash_test

import (
	"context"
	"database/sql"
	"encoding/json"
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
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

// record is what the journals of a journey hold at one moment. What belongs to a
// child run has the path of its node and ">" before its name, and what belongs to
// a round of a session the message that it began with.
type record struct {
	runs      []*journal
	labels    map[string]string // of the runs, by id
	effects   map[string]int    // how often an effect's end is journaled, by key
	done      map[string]int    // the same, successes alone
	completed map[string]int    // nodes, by path
	answered  map[string]int    // questions, by id
	asks      []crash.Ask       // what the ledger had been asked for by then
	session   sessionRecord
}

// journal is one run of a record.
type journal struct {
	id, label string
	row       store.Run
	lines     []string // the events, as --events prints them
	end       string   // kind of the last event
	open      []engine.Interrupt
}

// named returns the name of something in a run.
func named(label, name string) string {
	if label == "" {
		return name
	}
	return label + ">" + name
}

// journal is that of a run, empty if there is none.
func (r *record) journal(id string) *journal {
	for _, o := range r.runs {
		if o.id == id {
			return o
		}
	}
	return &journal{}
}

// readRecord reads the journals from a copy, so that the binary finds the files as
// they were left.
func (j *trial) readRecord(tb testing.TB) (*record, error) {
	tb.Helper()
	r := newRecord()
	if _, err := os.Stat(j.db()); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	path, err := j.copyDatabase()
	if err != nil {
		return nil, err
	}
	if err := checkIntegrity(tb.Context(), path); err != nil {
		return nil, err
	}
	s, err := sqlite.Open(tb.Context(), path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // only read
	if len(j.scenario.messages) > 0 {
		err = r.addSession(tb.Context(), s, j)
	} else {
		err = r.addTree(tb.Context(), s, j.run, "")
	}
	if err != nil {
		return nil, err
	}
	return r, r.addAsks(j.harness.asks)
}

func newRecord() *record {
	return &record{
		labels: make(map[string]string), effects: make(map[string]int), done: make(map[string]int),
		completed: make(map[string]int), answered: make(map[string]int),
	}
}

// copyDatabase copies the database as it was left, and returns where to.
func (j *trial) copyDatabase() (string, error) {
	folder := filepath.Join(j.dir, "copy")
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "weir.db")
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(j.db()+suffix, path+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return path, nil
}

// addTree takes a run in and those that it has started, and theirs.
func (r *record) addTree(ctx context.Context, s *sqlite.Store, id, label string) error {
	row, err := s.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if known, ok := r.labels[id]; ok {
		return fmt.Errorf("%s and %s are one run, %s", known, label, id)
	}
	o := &journal{id: id, label: label, row: row}
	r.runs = append(r.runs, o)
	r.labels[id] = label
	for c, err := range s.Commits(ctx, id, 0) {
		if err != nil {
			return err
		}
		if err := r.add(o, c); err != nil {
			return err
		}
	}
	children, err := s.Runs(ctx, store.Filter{Parent: id})
	if err != nil {
		return err
	}
	for n := range children { // none that its parent's journal does not have
		if !slices.ContainsFunc(o.open, func(i engine.Interrupt) bool { return i.Child.Run == children[n].ID }) {
			return fmt.Errorf("run %s exists and its parent's journal does not have it", children[n].ID)
		}
	}
	for _, i := range o.open {
		if err := r.addTree(ctx, s, i.Child.Run, named(label, childLabel(i.ID))); err != nil {
			return err
		}
	}
	return nil
}

// childLabel returns the name of the child run that a question stands for: of the call, if it is a flow that was called as a
// tool, because a node may call several; otherwise of the node.
func childLabel(question string) string {
	node, name, _ := strings.Cut(question, ":")
	if strings.HasPrefix(name, "tool") {
		return question
	}
	return node
}

// printed returns an event as --events prints it.
func (o *journal) printed(c engine.Commit, i int) (string, error) {
	it := runner.Item{Run: o.id, Number: c.First + int64(i), At: c.At, Event: c.Events[i]}
	if strings.Contains(o.id, ".") { // with the root of its tree
		it.PathPrefix = o.label + ">"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(it)
	return b.String(), err
}

// add takes a commit in.
func (r *record) add(o *journal, c engine.Commit) error {
	for i, e := range c.Events {
		line, err := o.printed(c, i)
		if err != nil {
			return err
		}
		o.lines = append(o.lines, line)
		o.end = e.Kind()
		r.session.add(e)
		switch e := e.(type) {
		case *engine.RunForked:
			r.removeShared(o)
		case *engine.NodeWaiting:
			for _, i := range e.Interrupts {
				if i.Child != nil && !slices.ContainsFunc(o.open, func(known engine.Interrupt) bool { return known.Child.Run == i.Child.Run }) {
					o.open = append(o.open, i) // a node that waits for several may wait again for some
				}
			}
		case *engine.EffectCompleted:
			r.effects[named(o.label, e.Key)]++
			if e.Error == nil {
				r.done[named(o.label, e.Key)]++
			}
		case *engine.NodeCompleted:
			r.completed[named(o.label, e.Path)]++
		case *engine.InterruptAnswered:
			r.answered[named(o.label, e.ID)]++
		}
	}
	return nil
}

// addAsks takes in what the ledger was asked for by these runs.
func (r *record) addAsks(dir string) error {
	for _, o := range r.runs {
		if strings.Contains(o.id, ".") { // with the root of its tree
			continue
		}
		asks, err := crash.ReadAsks(dir, o.id)
		if err != nil {
			return err
		}
		for _, a := range asks {
			run, own, _ := strings.Cut(a.Key, "/")
			label, ok := r.labels[run]
			if !ok {
				return fmt.Errorf("%s was asked for by a run that no journal has", a.Key)
			}
			a.Key = named(label, own)
			r.asks = append(r.asks, a)
		}
	}
	return nil
}

// checkIntegrity asks SQLite whether a database is whole.
func checkIntegrity(ctx context.Context, path string) error {
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
func (j *trial) check(tb testing.TB, undisturbed *trial) error {
	tb.Helper()
	r, err := j.readRecord(tb)
	if err != nil {
		return err
	}
	errs := []error{j.checkSync(), j.checkNothingLost(r), j.checkNoRepeats(r), j.checkCarefulEffects(r), r.checkOnce(), r.checkEnded(), r.checkLedger(len(j.killed))}
	if j.last.Status != "completed" {
		errs = append(errs, fmt.Errorf("the binary says %q", j.last.Status))
	}
	if len(j.scenario.messages) > 0 {
		errs = append(errs, j.checkMessages(r))
	}
	if j.scenario.forkFrom != "" {
		errs = append(errs, j.checkParentUnchanged(tb))
	}
	if undisturbed != nil {
		errs = append(errs, j.checkOutputs(r, undisturbed))
	}
	j.known = r
	return errors.Join(errs...)
}

// checkEnded checks that every run has completed and that no process owns one.
func (r *record) checkEnded() error {
	for _, o := range r.runs {
		if o.end != "run.completed" || o.row.Head.Status != engine.Completed || o.row.Owner != "" {
			return fmt.Errorf("run %s (%s) is %s, owned by %q, and its journal ends with %s",
				o.id, o.label, o.row.Head.Status, o.row.Owner, o.end)
		}
	}
	return nil
}

// checkOnce checks that nothing is in the journal twice.
func (r *record) checkOnce() error {
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

// checkLedger checks the ledger against the journal: each ask is in the journal,
// but for one a key and kill; each effect in the journal was asked for; a key
// stands for one request and a request for one key.
func (r *record) checkLedger(kills int) error {
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
		if asks[key] < n && !isInProcess(key) {
			return fmt.Errorf("the journal has %d ends of %s, which was asked for %d times", n, key, asks[key])
		}
	}
	return nil
}

// isInProcess reports whether an effect stays inside the process: those of the cache in the flow fan, and the results of the flows
// that the flow desk calls as tools.
func isInProcess(key string) bool {
	return strings.HasPrefix(key, "kept/") || key == "work/tool#1" || key == "work/tool#3" || key == "direct/tool#1"
}

// repeatedAsks counts what was asked for more often than the journal has an end of it.
func (r *record) repeatedAsks() int {
	n := len(r.asks)
	for key, ends := range r.effects {
		if !isInProcess(key) {
			n -= ends
		}
	}
	return n
}

// checkNoRepeats checks that no effect whose result was in the journal at the last kill
// was asked for afterwards.
func (j *trial) checkNoRepeats(r *record) error {
	if j.known == nil {
		return nil
	}
	before := make(map[string]int)
	for _, a := range j.known.asks {
		before[a.Key]++
	}
	now := make(map[string]int)
	for _, a := range r.asks {
		if now[a.Key]++; now[a.Key] > before[a.Key] && j.known.done[a.Key] > 0 {
			return fmt.Errorf("%s was in the journal when the process was killed, and was asked for again", a.Key)
		}
	}
	return nil
}

// checkCarefulEffects checks that an effect that must not be repeated blindly was asked for
// again only where a person said so.
func (j *trial) checkCarefulEffects(r *record) error {
	for _, key := range j.scenario.careful {
		path := key[:strings.LastIndexByte(key, '/')]
		asks, answered := 0, 0
		for _, a := range r.asks {
			if a.Key == key {
				asks++
			}
		}
		for id, n := range r.answered {
			if strings.HasPrefix(id, path+":effect.") {
				answered += n
			}
		}
		if asks == 0 || asks > 1+answered {
			return fmt.Errorf("%s was asked for %d times, and a person has said %d times to do it again", key, asks, answered)
		}
	}
	return nil
}

// checkOutputs checks that the run gave what the undisturbed one did.
func (j *trial) checkOutputs(r *record, undisturbed *trial) error {
	if len(j.scenario.messages) > 0 {
		return j.checkSession(r, undisturbed)
	}
	if string(j.last.Outputs) != string(undisturbed.last.Outputs) {
		return fmt.Errorf("the outputs are %s, undisturbed they are %s", j.last.Outputs, undisturbed.last.Outputs)
	}
	for what, sets := range map[string][2]map[string]int{
		"nodes":   {r.completed, undisturbed.known.completed},
		"effects": {r.done, undisturbed.known.done},
	} {
		got, want := slices.Sorted(maps.Keys(sets[0])), slices.Sorted(maps.Keys(sets[1]))
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: %s, undisturbed %s", what, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
	return nil
}
