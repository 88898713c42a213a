package crash_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-run/weir/internal/crash"
)

// scenario is a flow with the answers that a person gives in it, by the id of
// the question, or what is said in a session with it.
type scenario struct {
	name     string
	flow     string
	messages []string
	// forkFrom is where the run begins as a fork of another one, of the same flow, that
	// waits at that moment: the path of a node. "" is a run of its own.
	forkFrom string
	fresh    bool // without a database yet
	answers  map[string]string
	// careful lists effects that are not asked for again unless a person says so.
	careful []string
	// sequential says that one node runs at a time, so that nothing may leave the
	// process while a commit is on its way to the disk.
	sequential bool
	// sync is WEIR_SYNC; with normal a request leaves before the commit before it is on the disk.
	sync string
}

func scenarios() []scenario {
	return []scenario{
		{name: "first", flow: "chain", fresh: true, careful: []string{"order/request#1"}, sequential: true},
		{name: "chain", flow: "chain", careful: []string{"order/request#1"}, sequential: true},
		{name: "normal", flow: "chain", careful: []string{"order/request#1"}, sequential: true, sync: "normal"},
		{name: "fan", flow: "fan", careful: []string{"three/request#1"}},
		{name: "talk", flow: "talk", careful: []string{"book/request#1"}, sequential: true, answers: map[string]string{
			"talk#1/user:ask#1": "hello", "talk#2/user:ask#1": "a berth", "talk#3/user:ask#1": "bye", "amount:ask#1": "42",
		}},
		{name: "each", flow: "each"},
		{name: "time", flow: "time", careful: []string{"finish/request#1"}, answers: map[string]string{"ask:ask#1": "yes"}},
		{name: "tree", flow: "tree", careful: []string{"review>order/request#1"}, answers: map[string]string{"review>ask>ask:ask#1": "yes"}},
		{name: "fork", flow: "talk", forkFrom: "talk#2/answer", careful: []string{"book/request#1"}, sequential: true, answers: map[string]string{
			"talk#3/user:ask#1": "bye", "amount:ask#1": "42",
		}},
		{name: "forktree", flow: "tree", forkFrom: "each", careful: []string{"review>order/request#1"}, answers: map[string]string{"review>ask>ask:ask#1": "yes"}},
		{name: "desk", flow: "desk", careful: []string{
			"work/tool#2", "work:tool1#1>book/request#1", "work:tool3#1>book/request#1", "direct:tool1#1>book/request#1",
		}, answers: map[string]string{"work:tool1#1>ask:ask#1": "7", "work:tool3#1>ask:ask#1": "8", "direct:tool1#1>ask:ask#1": "9"}},
		{name: "rounds", flow: "rounds", careful: []string{"book>book/request#1"}, messages: []string{"hello", "book", "42", "bye"}},
	}
}

// report is what the binary prints with --json.
type report struct {
	Run        string
	Message    string
	Text       string
	Messages   []struct{ Message struct{ ID, Text string } }
	Status     string
	Outputs    json.RawMessage
	Interrupts []struct{ ID string }
	Error      json.RawMessage
}

// trial is one run, from its start to its end through kills.
type trial struct {
	harness  *harness
	scenario scenario
	run      string
	dir      string // of this journey; the database is in data/
	kills    []int  // steps from the start, or from the kill before, at which to kill; from 1
	with     syscall.Signal

	seen         int // steps since the last kill
	counts       map[crash.Kind]int
	killed       []crash.Step
	printed      []string        // events that the binary has printed
	answered     map[string]bool // questions whose answer the binary has acknowledged
	known        *record         // what the journal held after the last kill
	lines        []string        // what was said in the session, as far as it was durable
	turns        []report        // that the binary has acknowledged, of a session
	sent         []string        // what the last chat was given
	more         int             // what was said besides that
	last         report
	unsynced     bool // the log of the database has writes that may not be on the disk
	early        error
	parentBefore string // the journals of the run that this one is a fork of, as they were
}

// maxProcesses bounds a journey; the longest takes fewer than ten without
// kills.
const maxProcesses = 80

// runToCompletion starts the run and continues it until it has completed.
func (j *trial) runToCompletion(tb testing.TB) error {
	tb.Helper()
	if err := j.prepare(); err != nil {
		return err
	}
	if len(j.scenario.messages) > 0 {
		return j.runSession(tb)
	}
	if err := j.runParent(tb); err != nil {
		return err
	}
	args := j.start()
	for range maxProcesses {
		kills := len(j.killed)
		code, err := j.process(tb, args)
		if err != nil {
			return err
		}
		if args[0] == "answer" && (code == 0 || code == 3) {
			j.answered[args[2]] = true
		}
		switch {
		case code == 0:
			return nil
		case code == 3:
			args, err = j.answer()
		case len(j.killed) > kills && code == 128+int(j.with):
			args, err = j.afterKill(tb)
		default:
			err = fmt.Errorf("weir %s exited with %d: %s", strings.Join(args, " "), code, j.stderr())
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("not at an end after %d processes", maxProcesses)
}

func (j *trial) prepare() error {
	j.counts, j.answered = make(map[crash.Kind]int), make(map[string]bool)
	if err := os.MkdirAll(j.data(), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(j.dir, "stdin"), nil, 0o600); err != nil {
		return err
	}
	if _, err := os.Stat(j.db()); j.scenario.fresh || err == nil {
		return nil
	}
	return copyFile(j.harness.database, j.db())
}

func (j *trial) data() string { return filepath.Join(j.dir, "data") }
func (j *trial) db() string   { return filepath.Join(j.data(), "weir.db") }

func (j *trial) start() []string {
	if j.scenario.forkFrom != "" {
		return []string{"fork", j.parentRun(), "--from", j.scenario.forkFrom, "--id", j.run, "-i", j.baseInput(j.run)}
	}
	return []string{"run", j.harness.flow(j.scenario.flow), "--id", j.run, "-i", j.baseInput(j.run)}
}

func (j *trial) baseInput(run string) string {
	return "base=http://" + j.harness.ledger.HTTP + "/" + run
}

// answer returns how to answer the first question that the run waits with.
func (j *trial) answer() ([]string, error) {
	if len(j.last.Interrupts) == 0 {
		return nil, errors.New("the run is paused and waits for nothing")
	}
	id := j.last.Interrupts[0].ID
	value, ok := j.scenario.answers[id]
	if strings.Contains(id, ":effect.") { // an effect of unknown outcome: ask again
		value, ok = "retry", true
	}
	if !ok {
		return nil, fmt.Errorf("nobody knows an answer to %s", id)
	}
	return []string{"answer", j.run, id, value}, nil
}

// process runs the binary once.
func (j *trial) process(tb testing.TB, args []string) (int, error) {
	tb.Helper()
	out, err := os.Create(filepath.Join(j.dir, "stdout"))
	if err != nil {
		return 0, err
	}
	defer out.Close() //nolint:errcheck // it is read by name
	errs, err := os.Create(filepath.Join(j.dir, "stderr"))
	if err != nil {
		return 0, err
	}
	defer errs.Close() //nolint:errcheck // it is read by name
	if args[0] != "chat" {
		args = append(args, "--events")
	}
	args = append([]string{j.harness.binary}, append(args, "--json", "--db", j.db())...)
	in, err := os.Open(filepath.Join(j.dir, "stdin"))
	if err != nil {
		return 0, err
	}
	defer in.Close() //nolint:errcheck // only read
	var code int
	env := slices.Concat(j.harness.env, []string{"WEIR_SYNC=" + j.scenario.sync})
	if len(j.killed) < len(j.kills) || len(j.kills) == 0 {
		p := crash.Process{Args: args, Env: env, Dir: j.dir, Stdin: in, Stdout: out, Stderr: errs, Data: j.data(), Before: j.before}
		code, err = p.Run()
	} else {
		cmd := exec.CommandContext(tb.Context(), args[0], args[1:]...)
		cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, j.dir, in, out, errs
		if err = cmd.Run(); cmd.ProcessState != nil {
			code, err = cmd.ProcessState.ExitCode(), nil
		}
	}
	j.unsynced = false // the next process begins with what it finds
	if err != nil {
		return code, err
	}
	return code, j.readOutput()
}

// before counts steps and says where to kill.
func (j *trial) before(s crash.Step) syscall.Signal {
	j.counts[s.Kind]++
	j.seen++
	j.checkSyncOrder(s)
	if len(j.killed) == len(j.kills) || j.seen < j.kills[len(j.killed)] {
		return 0
	}
	j.seen = 0
	j.killed = append(j.killed, s)
	return j.with
}

// checkSyncOrder notes a request that leaves before what it depends on is on the disk.
// A kill loses nothing that was written, so only this shows that a power cut
// would not either.
func (j *trial) checkSyncOrder(s crash.Step) {
	log := strings.HasSuffix(s.Path, "-wal")
	switch {
	case log && s.Kind == crash.Journal:
		j.unsynced = true
	case log && s.Kind == crash.Sync:
		j.unsynced = false
	case j.unsynced && j.early == nil && j.scenario.sequential && s.Kind == crash.Network:
		j.early = errors.New("a request leaves while a commit is written and not on the disk")
	}
}

// checkSync returns what checkSyncOrder noted. With sync normal, an undisturbed run has
// such requests: one without shows that the setting does nothing.
func (j *trial) checkSync() error {
	switch {
	case j.scenario.sync != "normal":
		return j.early
	case j.early == nil && len(j.kills) == 0:
		return errors.New("every commit was on the disk before the request after it, with sync normal")
	}
	return nil
}

// readOutput takes in what the binary has printed: events, and last the report. A
// line without an end was never said.
func (j *trial) readOutput() error {
	b, err := os.ReadFile(filepath.Join(j.dir, "stdout"))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		switch {
		case !bytes.HasSuffix(line, []byte("\n")):
		case bytes.Contains(line[:min(len(line), 100)], []byte(`,"number":`)):
			j.printed = append(j.printed, string(line))
		default:
			j.last = report{}
			if err := json.Unmarshal(line, &j.last); err != nil {
				return fmt.Errorf("the binary printed %q: %w", line, err)
			}
			if len(j.scenario.messages) > 0 && j.last.Message != "" {
				j.turns = append(j.turns, j.last)
			}
		}
	}
	return nil
}

func (j *trial) stderr() string {
	b, _ := os.ReadFile(filepath.Join(j.dir, "stderr")) // for a message
	return strings.TrimSpace(string(b))
}

// afterKill reads the record and returns how to continue: with resume where
// the journal has begun, else with run.
func (j *trial) afterKill(tb testing.TB) ([]string, error) {
	tb.Helper()
	r, err := j.readAfterKill(tb)
	if err != nil {
		return nil, err
	}
	o := r.journal(j.run)
	if len(o.lines) == 0 || o.row.Base != nil && o.row.Commits == o.row.Base.Seq { // it has no commit of its own
		return j.start(), nil
	}
	return []string{"resume", j.run}, nil
}

// readAfterKill looks at what is there after a kill.
func (j *trial) readAfterKill(tb testing.TB) (*record, error) {
	tb.Helper()
	r, err := j.readRecord(tb)
	if err == nil {
		err = errors.Join(j.checkNothingLost(r), j.checkNoRepeats(r))
	}
	if err != nil {
		return nil, fmt.Errorf("after the kill: %w", err)
	}
	j.known = r
	return r, nil
}

// checkNothingLost checks that everything that was known is in the journal.
func (j *trial) checkNothingLost(r *record) error {
	for _, line := range j.printed {
		if !slices.ContainsFunc(r.runs, func(o *journal) bool { return slices.Contains(o.lines, line) }) {
			return fmt.Errorf("an event was printed and is not in the journal: %s", line)
		}
	}
	for id := range j.answered {
		if r.answered[id] == 0 {
			return fmt.Errorf("the answer to %s was acknowledged and is not in the journal", id)
		}
	}
	if j.known == nil {
		return nil
	}
	for _, o := range j.known.runs {
		now := r.journal(o.id).lines
		if !slices.Equal(o.lines, now[:min(len(o.lines), len(now))]) {
			return fmt.Errorf("the journal of %s (%s) is not what it was with more at the end", o.id, o.label)
		}
	}
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}
