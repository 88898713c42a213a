//go:build unix

package postgres

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/pgtest"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
	"github.com/weir-run/weir/store/storetest"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/tables"
	"github.com/weir-run/weir/trajectory/trajectorytest"
)

// keyText is the text of a master key.
func keyText(n byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, codec.KeySize))
}

func masterKey(tb testing.TB, n byte) codec.MasterKey {
	tb.Helper()
	k, err := codec.ParseMasterKey(keyText(n))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// encrypting returns a codec with a key for writing, 0 for none, and others for reading.
func encrypting(tb testing.TB, current byte, previous ...byte) *codec.Codec {
	tb.Helper()
	o := codec.Options{Compress: true}
	if current != 0 {
		k := masterKey(tb, current)
		o.Key = &k
	}
	for _, n := range previous {
		o.Previous = append(o.Previous, masterKey(tb, n))
	}
	return codec.New(o)
}

func TestPostgreSQLStoreWithEncryption(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector sees the same goroutines in TestPostgreSQLStore")
	}
	server, c := pgtest.Start(t), encrypting(t, 1)
	urls := map[store.Store]string{}
	open := func(tb testing.TB, url string, clock func() time.Time) store.Store {
		tb.Helper()
		s := openAt(tb, url, Options{Clock: clock, MaxConnections: 4, Codec: c})
		urls[s] = url
		return s
	}
	storetest.Run(t, storetest.Subject{
		Open: func(tb testing.TB, clock func() time.Time) store.Store {
			tb.Helper()
			return open(tb, server.Schema(tb), clock)
		},
		Reopen: func(tb testing.TB, s store.Store, clock func() time.Time) store.Store {
			tb.Helper()
			if err := s.Close(); err != nil {
				tb.Fatal(err)
			}
			return open(tb, urls[s], clock)
		},
		OpenSecond: func(tb testing.TB, s store.Store, clock func() time.Time) store.Store {
			tb.Helper()
			return open(tb, urls[s], clock)
		},
	})
}

var contentTime = time.UnixMilli(1_800_000_000_000)

// writeContents writes a text as contents wherever a store has any: the text is in no id and no name. what is a part of
// the ids.
func writeContents(t *testing.T, s *Store, user, what, secret string) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run, at := what+"-1", contentTime
	must(s.CreateSession(ctx, store.NewSession{
		ID: what, User: user, Flow: "f", Now: at, FirstMessage: &store.QueuedMessage{ID: run, Value: secret, By: "by", At: at},
	}))
	lease := store.Lease{Run: run, Owner: "owner", TTL: time.Hour}
	must(s.Append(ctx, []store.Append{{
		Commit: engine.Commit{Run: run, Seq: 1, First: 1, At: at.UnixMilli(), Events: []engine.Event{
			&engine.RunStarted{Parallel: 1, Session: what, Round: 1, User: user, Inputs: engine.Values{{Name: "i", Value: secret}}, Contexts: []engine.ContextChange{
				{ID: "main", Create: true, Session: what, Body: &convo.Change{Create: true, Append: []convo.Message{{ID: "m1", Role: convo.User, Text: secret}}}},
			}},
		}},
		Fence: 1, Head: store.Head{Status: engine.Paused, Waiting: []engine.Interrupt{{ID: "q", Prompt: secret}}}, Acquire: &lease, Carryover: []byte(`"` + secret + `"`),
		Start: &store.RunStart{NewRun: store.NewRun{ID: run, Flow: "f", User: user, At: at}, Message: run},
	}})[0])
	must(s.Append(ctx, []store.Append{{
		Commit: engine.Commit{Run: run, Seq: 2, First: 2, At: at.UnixMilli(), Events: []engine.Event{
			&engine.EffectCompleted{Key: "k", Result: map[string]any{"text": strings.Repeat(secret+" ", 300)}},
			&engine.RunFailed{Error: &engine.Error{Code: "x", Message: secret}},
		}},
		Fence: 1, Head: store.Head{Status: engine.Failed, Error: &engine.Error{Code: "x", Message: secret}, Waiting: []engine.Interrupt{}},
	}})[0])
	must(s.PutLiveText(ctx, []store.LiveTextPart{{Run: run, Fence: 1, Writer: "w", Data: []byte(secret)}}))
	must(s.Release(ctx, store.Lease{Run: run, Owner: "owner", Fence: 1}))
	must(s.Post(ctx, store.Post{Run: run, Kind: "answer", Name: "q", Value: secret, By: "by", At: at}))
	must(s.SaveCheckpoint(ctx, store.Checkpoint{Run: run, Seq: 1, Body: []byte(secret)}))
	_, err := s.Enqueue(ctx, store.QueuedMessage{ID: what + "-2", Session: what, Value: secret, By: "by", At: at})
	must(err)
	must(s.SetSessionState(ctx, store.StateEdit{Session: what, Changes: []engine.SessionChange{{Key: "k", Value: secret}}, By: "by", At: at}))
	_, err = s.AccessKey(ctx, what, []byte(secret))
	must(err)
	must(s.CachePut(ctx, store.CachePrefixOf(user)+what, secret, time.Time{}))
	must(s.CacheUpdate(ctx, store.LearnedCodePrefixOf(user)+what, at, func(engine.Value, bool) (engine.Value, bool) { return secret, true }))
	must(s.EditUserState(ctx, store.UserStateEdit{Write: engine.UserStateWrite{User: user, Flow: what, Changes: []engine.UserChange{{Key: "k", Value: secret, Replace: true}}}, By: "by", At: at}))
	for _, d := range []store.Document{{Kind: "k", ID: what + "1", User: user}, {Kind: "k", ID: what + "2", Run: run}} {
		d.Body = json.RawMessage(`"` + secret + `"`)
		out, err := s.PutDocument(ctx, d)
		must(err)
		_, err = s.PutDocument(ctx, out)
		must(err)
	}
	for n, w := range []memory.Write{{Key: "k", Text: secret}, {Key: "k", Text: secret + " again"}, {Text: secret + " without a key", Tags: []string{secret}}} {
		w.Scope, w.Kind, w.Now, w.ID = memory.Scope{Namespace: what, User: user}, memory.Fact, at, fmt.Sprint(what, n)
		_, err := s.Remember(ctx, w)
		must(err)
	}
	record := trajectorytest.Sample(t, trajectory.Key{User: user, Session: what, Round: 1}, 0)
	for i := range record.Nodes {
		record.Nodes[i].Name, record.Nodes[i].Description, record.Nodes[i].Attributes = secret, secret, map[string]any{"a": secret}
	}
	must(tables.New(s.Trajectories()).Save(ctx, record))
}

// liveTextOf returns the live text of a run.
func liveTextOf(t *testing.T, s *Store, run string) []store.LiveTextPart {
	t.Helper()
	parts, err := s.LiveText(t.Context(), map[string]int64{run: 0})
	if err != nil || len(parts) != 1 {
		t.Errorf("live text of run %s: %d parts, %v", run, len(parts), err)
	}
	return parts
}

// readContents counts the places in which the contents can be read, and fails if one has another text.
func readContents(t *testing.T, s *Store, user, what, secret string) (n int) {
	t.Helper()
	ctx := t.Context()
	is := func(what string, got any, err error) {
		t.Helper()
		if text := fmt.Sprint(got); err != nil || !strings.Contains(text, secret) {
			t.Errorf("%s: %.80s %v", what, text, err)
			return
		}
		n++
	}
	run := what + "-1"
	for c, err := range s.Commits(ctx, run, 0) {
		text, e := store.AppendPayload(nil, c.Events)
		is("commit", string(text), errors.Join(err, e))
	}
	messages, err := s.Messages(ctx, run, "main", 0, 10)
	is("messages", messages, err)
	history, err := s.SessionHistory(ctx, what, 0, 10)
	is("history", history, err)
	list, err := s.SessionMessages(ctx, what, 0, 10)
	is("messages of the session", list, err)
	r, err := s.Run(ctx, run)
	is("error of the run", r.Head.Error, err)
	x, err := s.Session(ctx, what)
	is("carryover", string(x.Carryover), err)
	posts, err := s.Inbox(ctx, run)
	is("inbox", posts, err)
	for _, part := range liveTextOf(t, s, run) {
		is("live text", string(part.Data), nil)
	}
	point, err := s.Checkpoint(ctx, run)
	is("checkpoint", string(point.Body), err)
	queued, err := s.Queue(ctx, what)
	is("queue", queued, err)
	state, err := s.SessionState(ctx, what)
	is("state", state, err)
	key, err := s.AccessKey(ctx, what, []byte("another"))
	is("access key", string(key), err)
	for _, prefix := range []string{store.CachePrefixOf(user), store.LearnedCodePrefixOf(user)} {
		v, _, err := s.CacheGet(ctx, prefix+what, contentTime)
		is("cache", v, err)
	}
	values, err := s.UserState(ctx, user, what)
	is("state of the user", values, err)
	for _, id := range []string{what + "1", what + "2"} {
		d, err := s.Document(ctx, "k", id)
		is("document", string(d.Body), err)
	}
	found, err := s.Recall(ctx, memory.Query{Scope: memory.Scope{Namespace: what, User: user}, Text: secret})
	is("memory", found.Items, err)
	if found.Total != 2 {
		t.Errorf("%d items are found", found.Total)
	}
	versions, err := s.MemoryVersions(ctx, what+"0")
	is("versions", versions, err)
	nodes, err := s.Trajectories().Nodes(ctx, trajectory.Action, trajectory.Filter{Session: &what})
	is("trajectory", nodes, err)
	return n
}

// filesWith lists the files of a server that have a text, after all of its pages were written.
func filesWith(t *testing.T, server *pgtest.Server, text string) (out []string) {
	t.Helper()
	server.SQL(t, "CHECKPOINT")
	root := server.SQL(t, "SHOW data_directory")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the server has removed it
		}
		if bytes.Contains(data, []byte(text)) || bytes.Contains(data, fmt.Appendf(nil, "%x", text)) || bytes.Contains(data, []byte(base64.StdEncoding.EncodeToString([]byte(text))[:12])) {
			out = append(out, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEncryptedContentsAreInNoFileOfTheServer looks for a text in the tables, the log and all other files, after it was
// written wherever a store has contents.
func TestEncryptedContentsAreInNoFileOfTheServer(t *testing.T) {
	server := pgtest.Start(t)
	const secret, plain = "secret8b1f42a9", "plain77c03d5e"
	s := openAt(t, server.Schema(t), Options{MaxConnections: 2, Codec: encrypting(t, 1)})
	writeContents(t, s, "ada", "ofada", secret)
	if n := readContents(t, s, "ada", "ofada", secret); n < 20 {
		t.Errorf("contents are read in %d places", n)
	}
	if files := filesWith(t, server, secret); len(files) > 0 {
		t.Errorf("files that have the text: %v", files)
	}
	for _, view := range []string{"journal", "message_text", "session_message", "session_state", "user_state", "remembered", "chain_of_work", "chain_of_work_step"} {
		server.SQL(t, "SELECT * FROM s1."+view) // it shows no contents, and does not fail
	}
	// The search would find a text that is not encrypted.
	writeContents(t, openAt(t, server.Schema(t), Options{MaxConnections: 2}), "ada", "ofada", plain)
	if files := filesWith(t, server, plain); len(files) < 10 {
		t.Errorf("files that have a text that is not encrypted: %v", files)
	}
}

func openError(t *testing.T, url string, c *codec.Codec) error {
	t.Helper()
	s, err := Open(t.Context(), url, Options{MaxConnections: 2, Codec: c})
	if err == nil {
		_ = s.Close()
	}
	return err
}

// TestADatabaseIsReadInAllFormsThatItHad changes what a database holds contents as, and wraps its keys anew.
func TestADatabaseIsReadInAllFormsThatItHad(t *testing.T) {
	server := pgtest.Start(t)
	url := server.Schema(t)
	steps := []struct {
		name  string
		codec *codec.Codec
	}{
		{"plain", nil},
		{"compressed", codec.New(codec.Options{Compress: true})},
		{"encrypted", encrypting(t, 1)},
		{"another master key", encrypting(t, 2, 1)},
		{"no longer encrypted", encrypting(t, 0, 1, 2)},
	}
	for i, step := range steps {
		s := openAt(t, url, Options{MaxConnections: 2, Codec: step.codec})
		writeContents(t, s, fmt.Sprint("user", i), fmt.Sprint("s", i), step.name)
		for j := range i + 1 {
			if n := readContents(t, s, fmt.Sprint("user", j), fmt.Sprint("s", j), steps[j].name); n < 20 {
				t.Errorf("%s: what is %s is read in %d places", step.name, steps[j].name, n)
			}
		}
	}
	for name, c := range map[string]*codec.Codec{"no key": nil, "one of two keys": encrypting(t, 1), "another key": encrypting(t, 9)} {
		err := openError(t, url, c)
		if !errors.Is(err, codec.ErrMissingKey) || !strings.Contains(err.Error(), masterKey(t, 2).ID()) || !strings.Contains(err.Error(), "storage.encryption.key") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := openAt(t, url, Options{MaxConnections: 2, Codec: encrypting(t, 2, 1)})
	if n, err := s.RewrapKeys(t.Context()); n == 0 || err != nil {
		t.Errorf("wrapped anew: %d %v", n, err)
	}
	if n, err := s.RewrapKeys(t.Context()); n != 0 || err != nil {
		t.Errorf("a second time: %d %v", n, err)
	}
	s = openAt(t, url, Options{MaxConnections: 2, Codec: encrypting(t, 2)})
	for j := range steps {
		readContents(t, s, fmt.Sprint("user", j), fmt.Sprint("s", j), steps[j].name)
	}
	if err := openError(t, url, encrypting(t, 1)); !errors.Is(err, codec.ErrMissingKey) {
		t.Errorf("the earlier key alone: %v", err)
	}
}

// TestTheKeyOfAnErasedUserIsDestroyed keeps a copy of the encrypted commits of a user, as a standby or a backup may,
// and erases the user while another process has the key in memory.
func TestTheKeyOfAnErasedUserIsDestroyed(t *testing.T) {
	server := pgtest.Start(t)
	url := server.Schema(t)
	s := openAt(t, url, Options{MaxConnections: 2, Codec: encrypting(t, 1)})
	other := openAt(t, url, Options{MaxConnections: 2, Codec: encrypting(t, 1)})
	writeContents(t, s, "ada", "first", "the first")
	writeContents(t, s, "bob", "bobs", "of bob")
	readContents(t, other, "ada", "first", "the first")
	server.SQL(t, "CREATE TABLE s1.copy AS SELECT payload FROM s1.run_commit WHERE run = (SELECT num FROM s1.run WHERE id = 'first-1')")
	gone, err := s.DeleteUser(t.Context(), "ada", store.DeleteOptions{Now: contentTime.Add(2 * time.Hour)})
	if err != nil || gone.Sessions != 1 || !strings.Contains(gone.Remains, "data key") {
		t.Fatalf("%+v %v", gone, err)
	}
	if n := server.SQL(t, "SELECT count(*) FROM s1.data_key WHERE user_id = 'ada'"); n != "0" {
		t.Errorf("%s keys are left", n)
	}
	third := openAt(t, url, Options{MaxConnections: 2, Codec: encrypting(t, 1)})
	var payload []byte
	if err := third.queryRow(t.Context(), []any{&payload}, "SELECT payload FROM copy LIMIT 1"); !errors.Is(err, codec.ErrMissingKey) {
		t.Errorf("the copy: %.40q %v", payload, err)
	}
	// The user returns in the process that has the destroyed key in memory, and gets another one.
	writeContents(t, other, "ada", "second", "the second")
	if n := readContents(t, third, "ada", "second", "the second"); n < 20 {
		t.Errorf("what is written later is read in %d places", n)
	}
	readContents(t, third, "bob", "bobs", "of bob")
}

func TestProcessesThatWriteForANewUserAtOnceUseOneKey(t *testing.T) {
	server := pgtest.Start(t)
	url := server.Schema(t)
	var stores []*Store
	for range 4 {
		stores = append(stores, openAt(t, url, Options{MaxConnections: 2, Codec: encrypting(t, 1)}))
	}
	var writes sync.WaitGroup
	for i := range 32 {
		writes.Go(func() {
			if err := stores[i%len(stores)].CachePut(context.Background(), store.CachePrefixOf("u")+fmt.Sprint(i), i, time.Time{}); err != nil {
				t.Error(err)
			}
		})
	}
	writes.Wait()
	if n := server.SQL(t, "SELECT count(*) FROM s1.data_key"); n != "1" {
		t.Errorf("%s keys", n)
	}
	list, err := stores[0].CacheList(t.Context(), store.CachePrefixOf("u"), contentTime)
	if err != nil || len(list) != 32 {
		t.Errorf("%d entries, %v", len(list), err)
	}
}

func TestChangedEncryptedContentsAreReported(t *testing.T) {
	server := pgtest.Start(t)
	s := openAt(t, server.Schema(t), Options{MaxConnections: 2, Codec: encrypting(t, 1)})
	writeContents(t, s, "ada", "x", "text")
	server.SQL(t, "UPDATE s1.run_commit SET payload = set_byte(payload, length(payload) - 1, get_byte(payload, length(payload) - 1) # 1) WHERE seq = 2")
	var failed error
	for _, err := range s.Commits(t.Context(), "x-1", 0) {
		failed = errors.Join(failed, err)
	}
	if !errors.Is(failed, store.ErrCorrupt) {
		t.Errorf("reading: %v", failed)
	}
	c, err := s.Chain(t.Context(), "x-1")
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for l, err := range s.Links(t.Context(), c) {
		if err != nil || l.Err != nil {
			bad++
		}
	}
	if bad == 0 {
		t.Error("the chain is verified")
	}
}
