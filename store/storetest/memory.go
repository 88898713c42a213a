package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/store"
)

// Memory tests the long-term memory of users.
type Memory interface {
	memory.Store
	Memories(ctx context.Context, f memory.Filter) ([]memory.Item, error)
	MemoryOwners(ctx context.Context, f memory.Filter) ([]memory.Owner, error)
	MemoryVersions(ctx context.Context, id string) ([]memory.Version, error)
	ForgetMemories(ctx context.Context, f memory.Filter) (store.DeleteResult, error)
}

func memoryCases() []testCase {
	return []testCase{
		{"an item has what was remembered, also after reopening", oneMemory},
		{"a newer fact under the same key replaces the older, and the history is kept", keyedMemory},
		{"the same words are remembered once", sameMemory},
		{"a call writes once, however often it is made", memoryCalls},
		{"a forgotten item is deleted with its history, in its scope alone", forgetMemory},
		{"nothing of one scope is found in another", memoryScopes},
		{"a full memory takes no new items, and new versions of those it has", fullMemory},
		{"concurrent writes are not lost", memoryWriters},
		{"items are listed, counted and forgotten by filters", memoryFilters},
		{"a list of items is read in pages, also while items change", memoryPages},
		{"a user's memory is deleted with the user", eraseMemoryOfUser},
		{"the memory of a session with nobody is deleted with the session", eraseMemoryOfSession},
		{"no item names an erased run as its source", eraseMemorySource},
	}
}

func ada() memory.Scope { return memory.Scope{Namespace: "shop", User: "ada"} }
func bob() memory.Scope { return memory.Scope{Namespace: "shop", User: "bob"} }

// fact returns a write of a scope, a number of seconds after the epoch.
func fact(s memory.Scope, after int, key, text string) memory.Write {
	return memory.Write{Scope: s, Kind: memory.Fact, Key: key, Text: text, Now: startTime().Add(time.Duration(after) * time.Second)}
}

func remember(t *testing.T, s Memory, w memory.Write) memory.WriteResult {
	t.Helper()
	out, err := s.Remember(t.Context(), w)
	must(t, err)
	return out
}

// texts returns the texts of the items that a query finds.
func texts(t *testing.T, s Memory, q memory.Query) []string {
	t.Helper()
	found, err := s.Recall(t.Context(), q)
	must(t, err)
	out := []string{}
	for i := range found.Items {
		out = append(out, found.Items[i].Text)
	}
	if q.Limit == 0 && found.Total <= memory.DefaultLimit {
		equal(t, "total", found.Total, len(out))
	}
	return out
}

// asUTC returns an item with comparable times.
func asUTC(i memory.Item) memory.Item {
	i.Created, i.At, i.Written = i.Created.UTC(), i.At.UTC(), i.Written.UTC()
	return i
}

func oneMemory(t *testing.T, s Store) {
	w := memory.Write{
		Scope: ada(), Kind: memory.Episode, Text: "Berth 4 was flooded.\n\x01\"quoted\" <b>", Tags: []string{"storm", " night  watch ", "storm"},
		At: startTime().Add(-time.Hour), Now: startTime(), Source: memory.Source{Run: "r", Flow: "f", Session: "s", Round: 3, By: "model"},
	}
	got := remember(t, s, w)
	equal(t, "version", got.Version, 1)
	keyed := remember(t, s, memory.Write{Scope: ada(), Kind: memory.Procedure, Key: "  Night\n WATCH ", Text: "1. look 2. write", Now: startTime().Add(time.Second)})
	for _, again := range []bool{false, true} {
		if again {
			s = reopened(t, s)
		}
		found, err := s.Recall(t.Context(), memory.Query{Scope: ada()})
		must(t, err)
		equal(t, "found", len(found.Items), 2)
		equal(t, "item", asUTC(found.Items[1]), memory.Item{
			ID: got.ID, Scope: ada(), Kind: memory.Episode, Created: startTime().UTC(), Version: memory.Version{
				Number: 1, Text: w.Text, Tags: []string{"storm", "night watch"}, At: w.At.UTC(), Written: startTime().UTC(), Source: w.Source,
			},
		})
		equal(t, "keyed", asUTC(found.Items[0]), memory.Item{
			ID: keyed.ID, Scope: ada(), Kind: memory.Procedure, Key: "night watch", Created: startTime().Add(time.Second).UTC(),
			Version: memory.Version{Number: 1, Text: "1. look 2. write", At: startTime().Add(time.Second).UTC(), Written: startTime().Add(time.Second).UTC()},
		})
		equal(t, "by its tag", texts(t, s, memory.Query{Scope: ada(), Text: "watch"}), []string{"1. look 2. write", w.Text})
	}
}

func keyedMemory(t *testing.T, s Store) {
	first := remember(t, s, fact(ada(), 0, "Diet", "eats meat"))
	again := remember(t, s, fact(ada(), 1, "diet", "vegetarian"))
	equal(t, "replaced", again, memory.WriteResult{ID: first.ID, Version: 2})
	other := fact(ada(), 2, "diet", "how to keep to it")
	other.Kind = memory.Procedure
	equal(t, "of another kind", remember(t, s, other).Version, 1)
	equal(t, "of another", remember(t, s, fact(bob(), 3, "diet", "eats meat")).Version, 1)
	equal(t, "found", texts(t, s, memory.Query{Scope: ada(), Text: "diet", Kind: memory.Fact}), []string{"vegetarian"})
	equal(t, "no more", texts(t, s, memory.Query{Scope: ada(), Text: "meat"}), []string{})
	tagged := fact(ada(), 4, "diet", "vegetarian")
	tagged.Tags = []string{"food"}
	equal(t, "other tags", remember(t, s, tagged).Version, 3)

	versions, err := s.MemoryVersions(t.Context(), first.ID)
	must(t, err)
	var said []string
	for _, v := range versions {
		said = append(said, fmt.Sprint(v.Number, " ", v.Text, " ", v.Tags, " ", v.Written.Sub(startTime())))
	}
	equal(t, "history", said, []string{"1 eats meat [] 0s", "2 vegetarian [] 1s", "3 vegetarian [food] 4s"})
	_, err = s.MemoryVersions(t.Context(), "no")
	checkError(t, err, store.ErrNotFound)

	for i := range memory.MaxVersions + 5 {
		remember(t, s, fact(ada(), 5, "diet", fmt.Sprint("eats ", i)))
	}
	versions, err = s.MemoryVersions(t.Context(), first.ID)
	must(t, err)
	equal(t, "versions kept", len(versions), memory.MaxVersions)
	equal(t, "the newest", versions[len(versions)-1].Number, memory.MaxVersions+8)
	equal(t, "the oldest", versions[0].Number, 9)
}

func sameMemory(t *testing.T, s Store) {
	w := fact(ada(), 0, "", "has a dog")
	first := remember(t, s, w)
	w.Now, w.Tags = w.Now.Add(time.Hour), []string{"pets"}
	again := remember(t, s, w)
	equal(t, "again", again, memory.WriteResult{ID: first.ID, Version: 1, Known: true})
	w.Kind = memory.Episode
	remember(t, s, w)
	w.Now = w.Now.Add(time.Hour)
	equal(t, "it happened again", remember(t, s, w).Known, false)
	equal(t, "the same time", remember(t, s, w).Known, true)
	equal(t, "kept", texts(t, s, memory.Query{Scope: ada(), Text: "dog"}), []string{"has a dog", "has a dog", "has a dog"})
	remember(t, s, fact(ada(), 0, "pet", "has a dog"))
	equal(t, "keyed", remember(t, s, fact(ada(), 1, "pet", "has a dog")).Known, true)
}

func memoryCalls(t *testing.T, s Store) {
	w := fact(ada(), 0, "", "has a dog")
	w.Call = "run/path/tool#1"
	first := remember(t, s, w)
	w.Text, w.ID = "has a cat", "another"
	equal(t, "again", remember(t, s, w), first)
	equal(t, "kept", texts(t, s, memory.Query{Scope: ada()}), []string{"has a dog"})

	keyed := fact(ada(), 0, "pet", "a dog")
	keyed.Call = "run/path/tool#2"
	remember(t, s, keyed)
	later := fact(ada(), 1, "pet", "a cat")
	later.Call = "run/path/tool#3"
	equal(t, "later", remember(t, s, later).Version, 2)
	equal(t, "the earlier again", remember(t, s, keyed).Version, 1)
	equal(t, "the later stays", texts(t, s, memory.Query{Scope: ada(), Keyed: true}), []string{"a cat"})
	same := fact(ada(), 2, "pet", "a cat")
	same.Call = "run/path/tool#4"
	equal(t, "known", remember(t, s, same).Known, true)
	equal(t, "known again", remember(t, s, same).Known, true)

	for range 2 {
		was, err := s.Forget(t.Context(), ada(), first.ID, "run/path/tool#5")
		must(t, err)
		equal(t, "forgotten", was, true)
		was, err = s.Forget(t.Context(), ada(), "no", "run/path/tool#6")
		must(t, err)
		equal(t, "nothing there", was, false)
	}
	equal(t, "written again after it was forgotten", remember(t, s, w), first)
	equal(t, "left", texts(t, s, memory.Query{Scope: ada()}), []string{"a cat"})
	w.Call = ""
	w.ID = ""
	equal(t, "without a call", remember(t, s, w).Version, 1)
}

func forgetMemory(t *testing.T, s Store) {
	w := remember(t, s, fact(ada(), 0, "pet", "a dog"))
	remember(t, s, fact(ada(), 1, "pet", "a cat"))
	kept := remember(t, s, fact(ada(), 2, "", "a cat, too"))
	for _, scope := range []memory.Scope{bob(), {Namespace: "other", User: "ada"}, {Namespace: "shop", Session: "ada"}} {
		was, err := s.Forget(t.Context(), scope, w.ID, "")
		must(t, err)
		equal(t, "of another", was, false)
	}
	was, err := s.Forget(t.Context(), ada(), w.ID, "")
	must(t, err)
	equal(t, "forgotten", was, true)
	_, err = s.MemoryVersions(t.Context(), w.ID)
	checkError(t, err, store.ErrNotFound)
	equal(t, "left", texts(t, s, memory.Query{Scope: ada(), Text: "cat dog"}), []string{"a cat, too"})
	equal(t, "from the beginning", remember(t, s, fact(ada(), 3, "pet", "a bird")).Version, 1)
	_, err = s.Forget(t.Context(), memory.Scope{}, kept.ID, "")
	checkError(t, err, memory.ErrInvalid)
}

func memoryScopes(t *testing.T, s Store) {
	scopes := []memory.Scope{
		ada(), bob(),
		{Namespace: "shop2", User: "ada"},
		{Namespace: "shop", Session: "ada"},
		{Namespace: "SHOP", User: "ada"},
		{Namespace: "shop", User: "ada "},
		{Namespace: "ada", User: "shop"},
		{Namespace: "shop", User: "' OR 1=1 --"},
		{Namespace: "shop", User: "%"},
	}
	for i, x := range scopes {
		remember(t, s, fact(x, i, "", fmt.Sprint("secret of ", i)))
	}
	for i, x := range scopes {
		for _, q := range []memory.Query{{Text: "secret"}, {}, {Text: "0 1 2 3 4 5 6 7 8"}, {Keyed: false}} {
			q.Scope = x
			equal(t, "found", texts(t, s, q), []string{fmt.Sprint("secret of ", i)})
		}
	}
	for _, x := range []memory.Scope{{}, {Namespace: "shop"}, {User: "ada"}, {Namespace: "shop", User: "ada", Session: "s"}, {Namespace: "shop", User: "\x00"}} {
		_, err := s.Recall(t.Context(), memory.Query{Scope: x})
		checkError(t, err, memory.ErrInvalid)
		_, err = s.Remember(t.Context(), fact(x, 0, "", "text"))
		checkError(t, err, memory.ErrInvalid)
	}
	equal(t, "of nobody", texts(t, s, memory.Query{Scope: memory.Scope{Namespace: "shop", User: "eve"}, Text: "secret"}), []string{})
}

func fullMemory(t *testing.T, s Store) {
	for i := range 3 {
		w := fact(ada(), i, fmt.Sprint("k", i), "x")
		w.MaxItems = 3
		remember(t, s, w)
	}
	w := fact(ada(), 4, "k9", "x")
	w.MaxItems = 3
	_, err := s.Remember(t.Context(), w)
	checkError(t, err, memory.ErrFull)
	w.Scope = bob()
	remember(t, s, w)
	w = fact(ada(), 5, "k1", "y")
	w.MaxItems = 3
	equal(t, "version", remember(t, s, w).Version, 2)
	w.Text = strings.Repeat("x", memory.MaxText+1)
	_, err = s.Remember(t.Context(), w)
	checkError(t, err, memory.ErrInvalid)
}

// memoryWriters: eight goroutines write items, versions of one fact, and one call that all of them make, while they
// read.
func memoryWriters(t *testing.T, s Store) {
	const writers, each = 8, 5
	var wg sync.WaitGroup
	ids := make([]string, writers)
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				own := fact(ada(), i, "", fmt.Sprintf("writer %d says %d", n, i))
				own.Call = fmt.Sprintf("w%d/%d", n, i)
				writeAll(t, s, own, fact(ada(), i, "shared", own.Text), own)
			}
			one := fact(ada(), 0, "", fmt.Sprint("only one of ", n))
			one.Call = "all make this call"
			ids[n] = writeAll(t, s, one)
		})
	}
	wg.Wait()
	equal(t, "one call, one item", len(slices.Compact(ids)), 1)
	list, err := s.Memories(t.Context(), memory.Filter{})
	must(t, err)
	said := map[string]int{}
	for i := range list {
		said[list[i].Text]++
		if list[i].Key == "shared" {
			equal(t, "versions", list[i].Number, writers*each)
			said[list[i].Text]--
		}
	}
	for n := range writers {
		for i := range each {
			equal(t, "kept", said[fmt.Sprintf("writer %d says %d", n, i)], 1)
		}
	}
	equal(t, "items", len(list), writers*each+2)
}

// writeAll writes items and reads them back; it returns the id of the last.
func writeAll(t *testing.T, s Store, list ...memory.Write) (id string) {
	for _, w := range list {
		out, err := s.Remember(t.Context(), w)
		if err != nil {
			t.Error(err)
		}
		id = out.ID
		if _, err := s.Recall(t.Context(), memory.Query{Scope: w.Scope, Text: w.Text}); err != nil {
			t.Error(err)
		}
	}
	return id
}

func memoryFilters(t *testing.T, s Store) {
	guest := memory.Scope{Namespace: "desk", Session: "s1"}
	for i, w := range []memory.Write{
		fact(ada(), 0, "a", "one"), fact(bob(), 1, "", "two"), fact(guest, 2, "", "three"), fact(memory.Scope{Namespace: "desk", User: "ada"}, 3, "", "four"),
	} {
		w.ID, w.Source = fmt.Sprint("m", i), memory.Source{Run: fmt.Sprint("r", i%2), Session: "s2"}
		if i == 3 {
			w.Kind = memory.Episode
		}
		remember(t, s, w)
	}
	for _, c := range []struct {
		f    memory.Filter
		want string
	}{
		{memory.Filter{}, "four three two one"},
		{memory.Filter{Limit: 2}, "four three"},
		{memory.Filter{User: "ada"}, "four one"},
		{memory.Filter{Namespace: "desk"}, "four three"},
		{memory.Filter{Session: "s1"}, "three"},
		{memory.Filter{Kind: memory.Episode}, "four"},
		{memory.Filter{ID: "m1"}, "two"},
		{memory.Filter{ID: "m"}, ""},
		{memory.Filter{Prefix: "m"}, "four three two one"},
		{memory.Filter{Prefix: "m3", User: "ada"}, "four"},
		{memory.Filter{Prefix: "m_"}, ""},
		{memory.Filter{From: "r1"}, "four two"},
		{memory.Filter{From: "s2", User: "bob"}, "two"},
	} {
		list, err := s.Memories(t.Context(), c.f)
		must(t, err)
		var said []string
		for i := range list {
			said = append(said, list[i].Text)
		}
		equal(t, fmt.Sprintf("%+v", c.f), strings.Join(said, " "), c.want)
	}
	owners, err := s.MemoryOwners(t.Context(), memory.Filter{})
	must(t, err)
	var said []string
	for _, o := range owners {
		said = append(said, fmt.Sprint(o.Scope, " ", o.Items, " ", o.Newest.Sub(startTime())))
	}
	equal(t, "owners", said, []string{"{desk  s1} 1 2s", "{desk ada } 1 3s", "{shop ada } 1 0s", "{shop bob } 1 1s"})
	for _, c := range []struct {
		f    memory.Filter
		want int
	}{{memory.Filter{User: "eve"}, 0}, {memory.Filter{ID: "m1"}, 1}, {memory.Filter{Namespace: "desk"}, 2}, {memory.Filter{}, 1}, {memory.Filter{}, 0}} {
		gone, err := s.ForgetMemories(t.Context(), c.f)
		must(t, err)
		equal(t, fmt.Sprintf("forgotten by %+v", c.f), gone.Memories, c.want)
	}
	owners, err = s.MemoryOwners(t.Context(), memory.Filter{})
	must(t, err)
	equal(t, "owners", owners, []memory.Owner{})
}

// memoryPages reads lists in pages of every size. Three items each share the time of their write.
func memoryPages(t *testing.T, s Store) {
	var ids []string
	for i := range 10 {
		w := fact([]memory.Scope{ada(), bob()}[i%2], i/3, fmt.Sprint("k", i), fmt.Sprint("text ", i))
		ids = append(ids, remember(t, s, w).ID)
	}
	for _, f := range []memory.Filter{{}, {User: "ada"}, {User: "nobody"}} {
		all, err := s.Memories(t.Context(), f)
		must(t, err)
		for size := 1; size <= 11; size++ {
			equal(t, fmt.Sprintf("%+v in pages of %d", f, size), idsOf(pagesOf(t, s, f, size, func(int) {})), idsOf(all))
		}
	}
	// Behind the first page of 4, items 9 to 6, an item that was listed is written again and one is forgotten:
	// the others are listed once.
	seen := pagesOf(t, s, memory.Filter{}, 4, func(page int) {
		if page == 0 {
			remember(t, s, fact(ada(), 20, "k8", "another text"))
			_, err := s.ForgetMemories(t.Context(), memory.Filter{ID: ids[4]})
			must(t, err)
		}
	})
	equal(t, "with changes", idsOf(seen), []string{ids[9], ids[8], ids[7], ids[6], ids[5], ids[3], ids[2], ids[1], ids[0]})
	// The position of a forgotten item: those of the same time are listed again, and none is left out.
	at, err := s.Memories(t.Context(), memory.Filter{ID: ids[1]})
	must(t, err)
	_, err = s.ForgetMemories(t.Context(), memory.Filter{ID: ids[1]})
	must(t, err)
	list, err := s.Memories(t.Context(), memory.Filter{Behind: memory.PositionOf(&at[0])})
	must(t, err)
	equal(t, "behind a forgotten item", idsOf(list), []string{ids[2], ids[0]})
	owners, err := s.MemoryOwners(t.Context(), memory.Filter{User: "bob", Limit: 1, Behind: memory.PositionOf(&list[1])})
	must(t, err)
	equal(t, "owners ignore positions", owners[0].Items, 4)
	gone, err := s.ForgetMemories(t.Context(), memory.Filter{User: "bob", Behind: memory.PositionOf(&list[1])})
	must(t, err)
	equal(t, "deletions ignore positions", gone.Memories, 4)
}

// pagesOf reads a list in pages, with a call between them.
func pagesOf(t *testing.T, s Store, f memory.Filter, size int, between func(page int)) (out []memory.Item) {
	t.Helper()
	f.Limit = size
	for page := 0; ; page++ {
		list, err := s.Memories(t.Context(), f)
		must(t, err)
		out = append(out, list...)
		if len(list) < size {
			return out
		}
		f.Behind = memory.PositionOf(&list[len(list)-1])
		between(page)
	}
}

func idsOf(list []memory.Item) []string {
	out := []string{}
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

func eraseMemoryOfUser(t *testing.T, s Store) {
	for i := range 3 {
		remember(t, s, fact(ada(), i, "", fmt.Sprint("ada ", i)))
	}
	remember(t, s, fact(memory.Scope{Namespace: "desk", User: "ada"}, 4, "", "ada 4"))
	remember(t, s, fact(memory.Scope{Namespace: "desk", Session: "ada"}, 5, "", "of a session"))
	remember(t, s, fact(bob(), 6, "", "bob"))
	e := afterLeasesExpired()
	for _, dry := range []bool{true, false} {
		e.DryRun = dry
		gone, err := s.DeleteUser(t.Context(), "ada", e)
		must(t, err)
		equal(t, "deleted", gone.Memories, 4)
	}
	gone, err := s.DeleteUser(t.Context(), "ada", e)
	must(t, err)
	equal(t, "again", gone.Memories, 0)
	list, err := s.Memories(t.Context(), memory.Filter{})
	must(t, err)
	equal(t, "left", len(list), 2)
	equal(t, "found", texts(t, s, memory.Query{Scope: ada(), Text: "ada"}), []string{})
}

func eraseMemoryOfSession(t *testing.T, s Store) {
	for _, id := range []string{"a", "b", "c"} {
		must(t, s.CreateSession(t.Context(), store.NewSession{ID: id, Flow: "f", Thread: id, Now: startTime()}))
		remember(t, s, fact(memory.Scope{Namespace: "shop", Session: id}, 0, "", "said in "+id))
		remember(t, s, fact(memory.Scope{Namespace: "shop", User: id}, 0, "", "of user "+id))
	}
	e := afterLeasesExpired()
	for _, dry := range []bool{true, false} {
		e.DryRun = dry
		gone, err := s.DeleteSession(t.Context(), "a", e)
		must(t, err)
		equal(t, "deleted", gone.Memories, 1)
	}
	must(t, s.ExpireSession(t.Context(), "b", startTime()))
	for _, dry := range []bool{true, false} {
		gone, err := s.PruneSessions(t.Context(), store.PruneOptions{Now: startTime().Add(time.Hour), DryRun: dry})
		must(t, err)
		equal(t, "pruned", gone.Memories, 1)
	}
	list, err := s.Memories(t.Context(), memory.Filter{})
	must(t, err)
	var said []string
	for i := range list {
		said = append(said, list[i].Text)
	}
	equal(t, "left", said, []string{"of user c", "said in c", "of user b", "of user a"})
}

func eraseMemorySource(t *testing.T, s Store) {
	talk := newConversation(t, s, "s") // of u
	talk.startAskedRound(t).finish(t, engine.Completed)
	w := newWriter(t, s, "alone")
	w.append(t, &engine.NodeCompleted{Path: "n", Contexts: []engine.ContextChange{{ID: "main", Create: true, Body: &convo.Change{Create: true}}}})
	remember(t, s, withSource(fact(ada(), 0, "k", "one"), memory.Source{Run: "s-1", Session: "s", Round: 1, Flow: "f"}))
	remember(t, s, withSource(fact(ada(), 1, "k", "two"), memory.Source{Run: "alone", Flow: "f"}))
	kept := withSource(fact(bob(), 2, "k", "three"), memory.Source{Run: "elsewhere", Session: "other", Round: 2})
	remember(t, s, kept)
	_, err := s.DeleteSession(t.Context(), "s", afterLeasesExpired())
	must(t, err)
	_, err = s.DeleteRun(t.Context(), "alone", afterLeasesExpired())
	must(t, err)
	list, err := s.Memories(t.Context(), memory.Filter{})
	must(t, err)
	equal(t, "another's", list[0].Source, kept.Source)
	versions, err := s.MemoryVersions(t.Context(), list[1].ID)
	must(t, err)
	for _, v := range versions {
		equal(t, "source", v.Source, memory.Source{Flow: "f"})
	}
}

func withSource(w memory.Write, x memory.Source) memory.Write {
	w.Source = x
	return w
}
