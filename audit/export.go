package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"regexp"
	"slices"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// exportVersion is the version of the format of exports that are written. Version 1
// had no digest.
const exportVersion = 2

// exportLine is a line of an export: one of its fields is set.
type exportLine struct {
	Export  *exportHead            `json:"export,omitempty"`
	Flow    *exportFlow            `json:"flow,omitempty"`
	Session *store.ArchivedSession `json:"session,omitempty"`
	Run     *store.ArchivedRun     `json:"run,omitempty"`
	Commit  *exportCommit          `json:"commit,omitempty"`
	End     *exportEnd             `json:"end,omitempty"`
}

type exportHead struct {
	Version int       `json:"version"`
	Run     string    `json:"run"`
	Made    time.Time `json:"made"`
}

type exportFlow struct {
	Fingerprint string `json:"fingerprint"`
	Normal      string `json:"normal"`
}

// exportCommit is a commit of the run before it, its events whole.
type exportCommit struct {
	Seq    int64           `json:"seq"`
	First  int64           `json:"first"`
	At     int64           `json:"at"` // Unix milliseconds
	Tag    *store.Tag      `json:"tag,omitempty"`
	Events json.RawMessage `json:"events"`
}

// exportEnd says that the export is complete, and the heads of all its chains.
type exportEnd struct {
	Runs    int        `json:"runs"`
	Commits int64      `json:"commits"`
	Heads   []KeptHead `json:"heads"`
	// Digest is SHA-256 over all lines before this one.
	Digest *store.Hash `json:"digest,omitempty"`
}

// ErrExport: what is to be imported or verified is no whole export, or not one that
// this version reads.
var ErrExport = errors.New("not an export that can be read")

// WriteExport writes a run of a store to out as one self-contained text, a JSON object
// a line: its tree of runs, the runs whose past they share, of a session the rounds up
// to its own, their flows, commits, heads, and the salts by which the heads are
// verified. Erasing a run does not reach its exports.
func WriteExport(ctx context.Context, st store.Store, run string, out io.Writer) error {
	s := store.Complete(st)
	runs, sessions, err := s.Archive(ctx, run)
	if err != nil {
		return err
	}
	w := &exporter{ctx: ctx, s: s, out: bufio.NewWriter(out), wrote: make(map[string]bool), sum: sha256.New()}
	w.line(exportLine{Export: &exportHead{Version: exportVersion, Run: run, Made: time.Now().UTC().Truncate(time.Second)}})
	w.flows(runs)
	for i := range sessions {
		w.line(exportLine{Session: &sessions[i]})
	}
	for i := range runs {
		w.run(&runs[i])
	}
	digest := store.Hash(w.sum.Sum(nil))
	w.end.Digest = &digest
	w.line(exportLine{End: &w.end})
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err != nil {
		return fmt.Errorf("export run %s: %w", run, w.err)
	}
	return nil
}

// exporter writes an export; its first error sticks.
type exporter struct {
	ctx context.Context //nolint:containedctx // lives as long as one call
	s   *store.Full
	out *bufio.Writer
	sum hash.Hash // of what was written
	end exportEnd
	err error
	// wrote are the digests of specs that are written.
	wrote map[string]bool
}

func (w *exporter) line(l exportLine) {
	if w.err != nil {
		return
	}
	var data []byte
	if data, w.err = l.encode(); w.err != nil {
		return
	}
	_, _ = w.sum.Write(data) // a hash never fails
	_, w.err = w.out.Write(data)
}

// encode returns the line as it is written, with the new line that ends it.
func (l *exportLine) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(l)
	return b.Bytes(), err
}

// flows writes the flows that runs ran, and those that these name.
func (w *exporter) flows(runs []store.ArchivedRun) {
	var wanted []string
	for i := range runs {
		wanted = append(wanted, runs[i].Fingerprint)
	}
	names := regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	for i := 0; i < len(wanted) && w.err == nil; i++ {
		if slices.Contains(wanted[:i], wanted[i]) {
			continue
		}
		normal, err := w.s.Flow(w.ctx, wanted[i])
		if errors.Is(err, store.ErrNotFound) {
			continue // a name that is no flow's, or one that was only built in Go
		}
		if w.err = err; err == nil {
			w.line(exportLine{Flow: &exportFlow{wanted[i], string(normal)}})
			wanted = append(wanted, names.FindAllString(string(normal), -1)...)
		}
	}
}

// specs writes what reading the record needs of the node types that runs began
// with, each once.
func (w *exporter) specs(events []engine.Event) {
	for _, e := range events {
		digest := ""
		switch e := e.(type) {
		case *engine.RunStarted:
			digest = e.Specs
		case *engine.RunForked:
			digest = e.Specs
		case *engine.ChangesAccepted:
			digest = e.Specs
		}
		if digest == "" || w.wrote[digest] || w.err != nil {
			continue
		}
		data, err := w.s.Flow(w.ctx, digest)
		if errors.Is(err, store.ErrNotFound) {
			continue // it is read with the types of the reader
		}
		if w.err = err; err == nil {
			w.wrote[digest] = true
			w.line(exportLine{Flow: &exportFlow{digest, string(data)}})
		}
	}
}

func (w *exporter) run(a *store.ArchivedRun) {
	w.line(exportLine{Run: a})
	if w.err != nil {
		return
	}
	c, err := w.s.Chain(w.ctx, a.ID)
	if err != nil {
		w.err = err
		return
	}
	var head KeptHead
	v, err := Verify(w.ctx, w.s, Options{Run: a.ID})
	switch {
	case err != nil:
		w.err = err
		return
	case !v.OK:
		w.err = fmt.Errorf("run %s differs from what was written (%s); see weir verify", a.ID, v.Findings[0].Message)
		return
	}
	head = v.Runs[len(v.Runs)-1].KeptHead
	head.Row = nil // it is of this database
	for l, err := range w.s.Links(w.ctx, c) {
		if err == nil {
			err = l.Err
		}
		if w.err = err; w.err != nil {
			return
		}
		w.specs(l.Events)
		events, err := store.AppendPayload(nil, l.Events)
		if w.err = err; w.err != nil {
			return
		}
		x := &exportCommit{Seq: l.Seq, First: l.First, At: l.At, Events: events}
		if l.HasTag {
			x.Tag = &l.Tag
		}
		w.line(exportLine{Commit: x})
		w.end.Commits++
	}
	w.end.Runs++
	w.end.Heads = append(w.end.Heads, head)
}

// Export is an export that was read. It is verified like a store: Verify(ctx, e,
// Options{Heads: e.Heads()}).
type Export struct {
	head     exportHead
	sum      hash.Hash // of the lines that were read
	flows    map[string]string
	sessions []store.ArchivedSession
	runs     []exportRun
	end      *exportEnd
}

type exportRun struct {
	store.ArchivedRun
	commits []exportCommit
}

// Run returns the run that was exported.
func (e *Export) Run() string { return e.head.Run }

// Heads returns the heads of its chains as they were when it was made.
func (e *Export) Heads() []KeptHead { return e.end.Heads }

// ReadExport reads what WriteExport wrote; ErrExport where it is none, or not whole.
func ReadExport(in io.Reader) (*Export, error) {
	e := &Export{flows: map[string]string{}, sum: sha256.New()}
	r := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			if wrong := e.addLine(n, line); wrong != nil {
				return nil, fmt.Errorf("%w: line %d: %w", ErrExport, n, wrong)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if e.end == nil {
		return nil, fmt.Errorf("%w: its end is missing", ErrExport)
	}
	var commits int64
	for i := range e.runs {
		commits += int64(len(e.runs[i].commits))
	}
	if len(e.runs) != e.end.Runs || commits != e.end.Commits {
		return nil, fmt.Errorf("%w: it has %d runs with %d commits, and says that there are %d with %d",
			ErrExport, len(e.runs), commits, e.end.Runs, e.end.Commits)
	}
	return e, nil
}

// check refuses a line that is not written as WriteExport writes it: one that says
// something twice, or in another case, or more than is known, which two readers could
// read differently.
func (l *exportLine) check(line []byte) error {
	set := 0
	for _, is := range []bool{l.Export != nil, l.Flow != nil, l.Session != nil, l.Run != nil, l.Commit != nil, l.End != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return errors.New("it says nothing that is known, or more than one thing")
	}
	again, err := l.encode()
	if err != nil {
		return err
	}
	if !bytes.Equal(again, line) {
		return store.ErrNotCanonical
	}
	if l.Commit == nil {
		return nil
	}
	events, err := store.DecodePayload(l.Commit.Events)
	if err != nil {
		return err
	}
	if again, err = store.AppendPayload(nil, events); err != nil {
		return err
	}
	if !bytes.Equal(again, l.Commit.Events) {
		return store.ErrNotCanonical
	}
	return nil
}

func (e *Export) addLine(n int, line []byte) error {
	var l exportLine
	if err := json.Unmarshal(line, &l); err != nil {
		return err
	}
	if err := l.check(line); err != nil {
		return err
	}
	before := store.Hash(e.sum.Sum(nil))
	_, _ = e.sum.Write(line) // a hash never fails
	switch {
	case e.end != nil:
		return errors.New("there is something after the end")
	case (n == 1) != (l.Export != nil):
		return errors.New("it does not begin as an export does, or begins twice")
	case l.Export != nil:
		if e.head = *l.Export; e.head.Version < 1 || e.head.Version > exportVersion {
			return fmt.Errorf("it is of version %d, and this build reads up to %d", e.head.Version, exportVersion)
		}
	case l.Flow != nil:
		if _, twice := e.flows[l.Flow.Fingerprint]; twice {
			return fmt.Errorf("flow %s is there twice", l.Flow.Fingerprint)
		}
		e.flows[l.Flow.Fingerprint] = l.Flow.Normal
	case l.Session != nil:
		if slices.ContainsFunc(e.sessions, func(s store.ArchivedSession) bool { return s.ID == l.Session.ID }) {
			return fmt.Errorf("session %s is there twice", l.Session.ID)
		}
		e.sessions = append(e.sessions, *l.Session)
	case l.Run != nil:
		if slices.ContainsFunc(e.runs, func(r exportRun) bool { return r.ID == l.Run.ID || r.Number >= l.Run.Number }) {
			return fmt.Errorf("run %s is there twice, or not in its place", l.Run.ID)
		}
		e.runs = append(e.runs, exportRun{ArchivedRun: *l.Run})
	case l.Commit != nil:
		if len(e.runs) == 0 {
			return errors.New("a commit of no run")
		}
		r := &e.runs[len(e.runs)-1]
		r.commits = append(r.commits, *l.Commit)
	case l.End != nil:
		e.end = l.End
		if d := l.End.Digest; d == nil && e.head.Version > 1 || d != nil && *d != before {
			return errors.New("what is before the end is not what was written")
		}
	}
	return nil
}

// Chain implements store.ChainStore.
func (e *Export) Chain(ctx context.Context, run string) (store.Chain, error) {
	all, err := e.Chains(ctx)
	for _, c := range all {
		if err == nil && c.Run == run {
			return c, nil
		}
	}
	return store.Chain{}, errors.Join(err, fmt.Errorf("run %s: %w", run, store.ErrNotFound))
}

// Chains implements store.ChainStore.
func (e *Export) Chains(context.Context) ([]store.Chain, error) {
	numbers := map[string]int64{}
	out := make([]store.Chain, 0, len(e.runs))
	for i := range e.runs {
		r := &e.runs[i]
		c := store.Chain{Run: r.ID, Number: r.Number, Origin: store.OriginHash(r.Secret, r.ID), Unchained: r.Unchained}
		if r.Base != nil {
			c.Base, c.BaseSeq, c.BaseEvents = numbers[r.Base.Run], r.Base.Seq, e.events(r.Base)
		}
		numbers[r.ID] = r.Number
		out = append(out, c)
	}
	return out, nil
}

// events returns the number of the last event that a base shares.
func (e *Export) events(b *store.Base) int64 {
	for i := range e.runs {
		r := &e.runs[i]
		if r.ID != b.Run {
			continue
		}
		for _, c := range r.commits {
			if c.Seq == b.Seq {
				events, _ := store.DecodePayload(c.Events)
				return c.First + int64(len(events)) - 1
			}
		}
		if r.Base != nil {
			return e.events(&store.Base{Run: r.Base.Run, Seq: b.Seq})
		}
	}
	return 0
}

// Links implements store.ChainStore.
func (e *Export) Links(_ context.Context, c store.Chain) iter.Seq2[store.ChainLink, error] {
	return func(yield func(store.ChainLink, error) bool) {
		for i := range e.runs {
			if e.runs[i].ID != c.Run {
				continue
			}
			for _, x := range e.runs[i].commits {
				l := store.ChainLink{Header: store.Header{Seq: x.Seq, First: x.First, At: x.At}}
				if l.HasTag = x.Tag != nil; l.HasTag {
					l.Tag = *x.Tag
				}
				if l.Events, l.Err = store.DecodePayload(x.Events); l.Err == nil {
					var payload []byte
					payload, l.Err = store.AppendPayload(nil, l.Events)
					l.Count, l.Digest = int64(len(l.Events)), store.CommitDigest(e.runs[i].Secret, c.Run, x.Seq, payload)
				}
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}

// Audit implements store.AuditStore: it has the rows of runs as the only data outside the chains.
func (e *Export) Audit(_ context.Context, c store.Chain, f *store.JournalFacts) ([]store.Finding, error) {
	var out []store.Finding
	for i := range e.runs {
		r := &e.runs[i]
		if r.ID != c.Run || c.Unchained > 0 {
			continue
		}
		said := [][3]string{{"user", r.User, f.User}}
		if f.Started != nil && f.Forked == nil {
			said = append(said, [3]string{"flow", r.Flow, f.Started.Flow}, [3]string{"fingerprint", r.Fingerprint, f.Started.Fingerprint},
				[3]string{"parent", r.Parent, f.Started.Parent}, [3]string{"origin", r.Origin, f.Started.Origin}, [3]string{"session", r.Session, f.Started.Session})
		}
		if f.Ended.Ended() || r.Status == engine.Completed.String() {
			said = append(said, [3]string{"status", r.Status, f.Ended.String()})
		}
		for _, x := range said {
			if x[1] != x[2] {
				out = append(out, store.Finding{Run: c.Run, What: store.FoundChanged, Message: fmt.Sprintf("the run's %s is %q, and its journal says %q", x[0], x[1], x[2])})
			}
		}
	}
	return out, nil
}

// AuditAll implements store.AuditStore.
func (e *Export) AuditAll(context.Context) ([]store.Finding, error) { return nil, nil }

// Fingerprints implements store.AuditStore.
func (e *Export) Fingerprints(context.Context) ([]string, error) { return sortedKeysOf(e.flows), nil }

// Flow implements store.Flows.
func (e *Export) Flow(_ context.Context, fingerprint string) ([]byte, error) {
	if normal, ok := e.flows[fingerprint]; ok {
		return []byte(normal), nil
	}
	return nil, fmt.Errorf("flow %s: %w", fingerprint, store.ErrNotFound)
}

// PutFlow implements store.Flows; an export is not written to.
func (e *Export) PutFlow(context.Context, string, []byte) error {
	return fmt.Errorf("put flow: %w", errors.ErrUnsupported)
}
