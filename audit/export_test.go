package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/audit"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/weirkit"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/sqlite"
)

func exported(t *testing.T, s weir.Store, run string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := audit.WriteExport(t.Context(), s, run, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestImportedRunEqualsTheOriginal(t *testing.T) {
	t.Parallel()
	from := weirkit.OpenSQLite(t, archiveDatabase(t))
	defer func() { _ = from.Close() }()
	to := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "other.db"))
	w := weirkit.OpenForkWeir(t, to, &weirkit.EchoModel{})
	all, err := from.Runs(t.Context(), store.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		bringOver(t, from, to, r)
		weirkit.ChainRows(t, w, r.ID)
	}
	compareSessionStates(t, from, to)
	for _, r := range all {
		if r.Session == "" && r.Parent == "" && r.Events > 12 {
			fork, _, err := w.Fork(t.Context(), r.ID, weir.ForkOptions{At: 5})
			if err != nil {
				t.Fatal(err)
			}
			if got := weirkit.AnswerAll(t, w, fork); got.Status != engine.Completed {
				t.Errorf("the fork is %s: %v", got.Status, got.Error)
			}
			break
		}
	}
}

// compareSessionStates compares what the sessions keep between rounds.
func compareSessionStates(t *testing.T, from, to *sqlite.Store) {
	t.Helper()
	sessions, err := from.Sessions(t.Context(), store.SessionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range sessions {
		want, err := from.SessionState(t.Context(), x.ID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := to.SessionState(t.Context(), x.ID)
		if err != nil || len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("session %s keeps %+v, expected %+v (%v)", x.ID, got, want, err)
		}
	}
}

// bringOver exports a run, imports it, and compares what is there then.
func bringOver(t *testing.T, from, to *sqlite.Store, r store.Run) {
	t.Helper()
	e, err := audit.ReadExport(bytes.NewReader(exported(t, from, r.ID)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := audit.Import(t.Context(), to, e)
	if err != nil {
		t.Fatalf("run %s (%s): %v", r.ID, r.Flow, err)
	}
	if got.Runs+got.Existing == 0 {
		t.Errorf("run %s: %+v", r.ID, got)
	}
	v, err := audit.Verify(t.Context(), to, audit.Options{Heads: e.Heads()})
	if err != nil || !v.OK {
		t.Fatalf("run %s, imported: %+v %v", r.ID, v.Findings, err)
	}
	if again, err := audit.Import(t.Context(), to, e); err != nil || again.Runs != 0 {
		t.Errorf("again: %+v %v", again, err)
	}
	is, err := to.Run(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	is.Fence, r.Fence = 0, 0
	if !reflect.DeepEqual(is, r) {
		t.Errorf("run %s is\n%+v, want\n%+v", r.ID, is, r)
	}
	a, b := weirkit.JournalText(t, to, r.ID), weirkit.JournalText(t, from, r.ID)
	if a != b {
		t.Errorf("run %s has other commits", r.ID)
	}
}

// exportForgeries are other texts for an export: each of its lines with each of the
// documents that some reader may take for it, and the file as a whole.
func exportForgeries(data string) map[string]string {
	r := rand.New(rand.NewPCG(3, 1))
	out := map[string]string{
		"a line behind the end":  data + "{}\n",
		"words behind the end":   data + "more",
		"a blank line":           strings.Replace(data, "\n", "\n\n", 1),
		"no new line at the end": strings.TrimSuffix(data, "\n"),
		"other ends of lines":    strings.ReplaceAll(data, "\n", "\r\n"),
		"a NUL behind":           data + "\x00",
		"a mark of byte order":   "\ufeff" + data,
		"nested":                 strings.Replace(data, `{"export":{`, `{"export":{"export":{},`, 1),
		"deep":                   strings.Replace(data, `{"export":{`, `{"x":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+`,"export":{`, 1),
	}
	at := 0
	for n, line := range strings.SplitAfter(data, "\n") {
		for _, f := range documents(r, strings.TrimSuffix(line, "\n")) {
			what := fmt.Sprintf("line %d, %s at %d", n+1, f.how, len(out))
			out[what] = data[:at] + string(f.to.(text)) + "\n" + data[at+len(line):]
		}
		if line != "" {
			out[fmt.Sprintf("line %d twice", n+1)] = data[:at] + line + line + data[at+len(line):]
			out[fmt.Sprintf("line %d missing", n+1)] = data[:at] + data[at+len(line):]
			out[fmt.Sprintf("line %d, a bit", n+1)] = data[:at] + string(flipped(r, []byte(line))) + data[at+len(line):]
		}
		at += len(line)
	}
	return out
}

// refusedExport reports whether an export is not taken for one that is as it was written.
func refusedExport(t *testing.T, data string) bool {
	t.Helper()
	e, err := audit.ReadExport(strings.NewReader(data))
	if err != nil {
		return true
	}
	v, err := e.Verify(t.Context(), audit.Options{Heads: e.Heads()})
	return err != nil || !v.OK
}

func TestExportHasOneReading(t *testing.T) {
	t.Parallel()
	from := weirkit.OpenSQLite(t, archiveDatabase(t))
	defer func() { _ = from.Close() }()
	all, err := from.Runs(t.Context(), store.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	n, each := 0, 40+tampered(0)
	for i, r := range all {
		if i%6 != 0 {
			continue
		}
		data := string(exported(t, from, r.ID))
		forged := exportForgeries(data)
		for _, what := range slices.Sorted(maps.Keys(forged)) {
			if n++; forged[what] != data && (len(forged) <= each || n%(len(forged)/each) == 0) && !refusedExport(t, forged[what]) {
				t.Errorf("run %s: %s: not refused", r.ID, what)
			}
		}
	}
	t.Logf("%d forgeries", n)
}

func TestChangedExportIsRefused(t *testing.T) {
	t.Parallel()
	from := weirkit.OpenSQLite(t, archiveDatabase(t))
	defer func() { _ = from.Close() }()
	all, err := from.Runs(t.Context(), store.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	data := string(exported(t, from, all[len(all)-1].ID))
	lines := strings.SplitAfter(data, "\n")
	to := weirkit.OpenSQLite(t, filepath.Join(t.TempDir(), "other.db"))
	defer func() { _ = to.Close() }()
	for what, text := range map[string]string{
		"a word":       strings.Replace(data, `"attempt":1`, `"attempt":2`, 1),
		"a flow":       strings.Replace(data, `userInput`, `userinput`, 1),
		"a line fewer": strings.Join(append(append([]string{}, lines[:4]...), lines[5:]...), ""),
		"no end":       strings.Join(lines[:len(lines)-2], ""),
		"nothing":      "",
		"words":        "hello\n",
		"a status":     strings.Replace(data, `"status":"completed"`, `"status":"failed"`, 1),
	} {
		e, err := audit.ReadExport(strings.NewReader(text))
		if err == nil {
			_, err = audit.Import(t.Context(), to, e)
		}
		if !errors.Is(err, audit.ErrExport) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if runs, err := to.Runs(t.Context(), store.Filter{}); err != nil || len(runs) != 0 {
		t.Errorf("%d runs were imported (%v)", len(runs), err)
	}
}
