package storetest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir/memory"
)

func memorySearchCases() []testCase {
	return []testCase{
		{"items are found by their words, the best first and the newest of equals", searchMemory},
		{"kind, key, time and limit narrow what is found", narrowMemory},
		{"scripts without spaces, diacritics and case are found", searchScripts},
		{"no text is a query that cannot be read", searchAnything},
		{"search equals a naive scan on random texts", searchRandom},
	}
}

func searchMemory(t *testing.T, s Store) {
	for i, text := range []string{
		"The user likes coffee.", "The user likes tea with milk.", "The user likes the sea.", "Tea, tea and tea again.", "The boat is called Teasel.",
	} {
		remember(t, s, fact(ada(), i, "", text))
	}
	remember(t, s, fact(ada(), 9, "drink", "nothing after ten"))
	for text, want := range map[string][]string{
		"tea":                {"Tea, tea and tea again.", "The user likes tea with milk.", "The boat is called Teasel."},
		"TEA?":               {"Tea, tea and tea again.", "The user likes tea with milk.", "The boat is called Teasel."},
		"what about milk":    {"The user likes tea with milk."},
		"likes":              {"The user likes coffee.", "The user likes the sea.", "The user likes tea with milk."},
		"cof":                {"The user likes coffee."},
		"co":                 {},
		"drink":              {"nothing after ten"},
		"does the user sail": {"The user likes the sea.", "The user likes coffee.", "The user likes tea with milk.", "The boat is called Teasel."},
		"wine":               {},
		"...":                {},
		"teatime":            {},
	} {
		equal(t, text, texts(t, s, memory.Query{Scope: ada(), Text: text}), want)
	}
	remember(t, s, fact(bob(), 0, "", "The user likes coffee."))
	remember(t, s, fact(bob(), 1, "", "The user likes coffee. "))
	equal(t, "the newest of equals", texts(t, s, memory.Query{Scope: bob(), Text: "coffee"}), []string{"The user likes coffee. ", "The user likes coffee."})
}

func narrowMemory(t *testing.T, s Store) {
	for i := range 12 {
		w := fact(ada(), i, "", fmt.Sprint("red ", i))
		w.Kind = memory.Kinds()[i%3]
		if w.Kind == memory.Fact {
			w.Key = fmt.Sprint("k", i)
		}
		remember(t, s, w)
	}
	at := func(n int) time.Time { return startTime().Add(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		q     memory.Query
		want  string
		total int
	}{
		{memory.Query{Limit: 3}, "red 11,red 10,red 9", 12},
		{memory.Query{Kind: memory.Episode, Limit: 2}, "red 10,red 7", 4},
		{memory.Query{Kind: memory.Procedure, Text: "red", Limit: 2}, "red 11,red 8", 4},
		{memory.Query{Keyed: true, Since: at(4)}, "red 9,red 6", 2},
		{memory.Query{Text: "red", Since: at(10)}, "red 11,red 10", 2},
		{memory.Query{Since: at(10).Add(1)}, "red 11", 1},
		{memory.Query{Text: "red", Keyed: true, Since: at(4)}, "red 9,red 6", 2},
	} {
		c.q.Scope = ada()
		found, err := s.Recall(t.Context(), c.q)
		must(t, err)
		var got []string
		for i := range found.Items {
			got = append(got, found.Items[i].Text)
		}
		equal(t, fmt.Sprintf("%+v", c.q), strings.Join(got, ","), c.want)
		equal(t, fmt.Sprintf("total of %+v", c.q), found.Total, c.total)
	}
	for _, q := range []memory.Query{{Limit: -1}, {Limit: memory.MaxLimit + 1}, {Kind: "rumour"}} {
		q.Scope = ada()
		_, err := s.Recall(t.Context(), q)
		checkError(t, err, memory.ErrInvalid)
	}
}

func searchScripts(t *testing.T, s Store) {
	all := []string{
		"用户喜欢北京烤鸭", "彼女は東京タワーに住んでいます", "ユーザーはコーヒーが好きです", "Crème brûlée à Besançon", "ΟΔΥΣΣΕΎΣ und die Straße nach Łódź",
		"ผู้ใช้ชอบกาแฟ", "서울에서 일합니다", "пользователь любит чай", "المُستَخدِم يُحِبّ الشاي", "loves 🍕 and ⛵", "ﬁve ½ ①", "resume\u0301 co\u00adoperate",
	}
	for i, text := range all {
		remember(t, s, fact(ada(), i, "", text))
	}
	for text, want := range map[string]int{
		"北京": 0, "烤鸭": 0, "鸭": 0, "用": 0, "東京": 1, "東京タワー": 1, "住んで": 1, "コーヒー": 2, "ｺｰﾋｰ": 2, "好き": 2,
		"creme BRULEE": 3, "besancon": 3, "BESANÇON": 3, "οδυσσευς": 4, "strasse": 4, "lodz": 4,
		"กาแฟ": 5, "ชอบ": 5, "서울": 6, "ЧАЙ": 7, "الشاي": 8, "المستخدم": 8, "🍕": 9, "⛵️": 9, "five": 10, "1": 10, "résumé": 11, "cooperate": 11,
	} {
		equal(t, text, texts(t, s, memory.Query{Scope: ada(), Text: text}), []string{all[want]})
	}
	for _, text := range []string{"北烤", "京都", "か", "🍔"} {
		equal(t, text, texts(t, s, memory.Query{Scope: ada(), Text: text}), []string{})
	}
}

// hostile are texts with characters that have a meaning in query languages.
func hostile() []string {
	return []string{
		`"`, `'`, `""`, `"""`, `a"b`, `NEAR(a b)`, `a AND`, `OR`, `NOT a`, `a NOT b`, `(`, `)`, `a*`, `*`, `^a`, `terms:a`, `-a`, `+a`, `a + b`, `{a b} : c`, `a·b`, `1·a`,
		`;DROP TABLE recall_item`, `%`, `_`, `\`, "\x00", "a\x00b", "\xff\xfe", "\u202e", "\ufeff", "é́́́", strings.Repeat("a ", 5000), strings.Repeat("a", 5000),
		strings.Repeat("(", 5000), strings.Repeat("北", 5000), "\u3099", "़", "🏳️‍🌈", "'; --", "?1", ":a", "@a", "$a", "{{ state.x }}", "<memory>", "İ", "ǅ", "ß", "﷽",
	}
}

func searchAnything(t *testing.T, s Store) {
	remember(t, s, fact(ada(), 0, "", "a text"))
	for _, text := range hostile() {
		_, err := s.Recall(t.Context(), memory.Query{Scope: ada(), Text: text})
		if err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
		w := fact(bob(), 0, "", text)
		if !utf8.ValidString(text) || len(text) > memory.MaxText {
			continue
		}
		remember(t, s, w)
		remember(t, s, fact(bob(), 1, text[:min(len(text), 40)], "x"))
		if len(memory.Terms(text)) > 0 {
			if !slices.Contains(texts(t, s, memory.Query{Scope: bob(), Text: text, Limit: 100}), text) {
				t.Errorf("%.40q does not find itself", text)
			}
		}
	}
}

// searchRandom writes, replaces and deletes at random, and compares the search results with a scan over the expected
// items.
func searchRandom(t *testing.T, s Store) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		scopes := []memory.Scope{
			{Namespace: fmt.Sprint("n", seed), User: "a"}, {Namespace: fmt.Sprint("n", seed), User: "b"}, {Namespace: fmt.Sprint("n", seed), Session: "a"},
		}
		m := &naiveMemory{t: t, s: s}
		for range 150 {
			scope := scopes[r.IntN(len(scopes))]
			switch n := r.IntN(10); {
			case n < 6:
				m.write(r, scope)
			case n == 6 && len(m.items) > 0:
				m.forget(m.items[r.IntN(len(m.items))].ID, scope)
			default:
				m.compare(r, scope)
			}
		}
		if m.found == 0 {
			t.Error("nothing was ever found: the test tests nothing")
		}
	}
}

// naiveMemory is a model of the memory.
type naiveMemory struct {
	t     *testing.T
	s     Store
	items []memory.Item // in the order of creation
	made  int64
	order map[string]int64
	found int
}

// words share prefixes and repeat.
func words(r *rand.Rand) string {
	list := []string{
		"a", "ab", "abc", "abcd", "ABCDE", "abd", "b", "bab", "bäb", "x", "x1", "12", "123", "北", "北京", "京", "東京", "ア", "アイ", "🍕", "-", "\"", "*", "AND",
	}
	var out []string
	for range 1 + r.IntN(6) {
		out = append(out, list[r.IntN(len(list))])
	}
	return strings.Join(out, []string{" ", "", ", "}[r.IntN(3)])
}

func (m *naiveMemory) write(r *rand.Rand, scope memory.Scope) {
	w := memory.Write{
		Scope: scope, Kind: memory.Kinds()[r.IntN(3)], Text: words(r), Now: startTime().Add(time.Duration(r.IntN(20)) * time.Second),
	}
	if w.Kind != memory.Episode && r.IntN(2) == 0 {
		w.Key = words(r)
	}
	if r.IntN(3) == 0 {
		w.Tags = []string{words(r)}
	}
	out := remember(m.t, m.s, w)
	w, err := w.Normalized()
	must(m.t, err)
	i := slices.IndexFunc(m.items, func(i memory.Item) bool { return i.ID == out.ID })
	switch {
	case out.Known:
		equal(m.t, "known", i >= 0 && w.SameContent(&m.items[i]), true)
	case out.Version == 1:
		w.ID = out.ID
		if m.order == nil {
			m.order = map[string]int64{}
		}
		m.made++
		m.order[out.ID] = m.made
		m.items = append(m.items, w.Item(1))
	default:
		m.items[i].Version = w.Item(out.Version).Version
	}
}

func (m *naiveMemory) forget(id string, scope memory.Scope) {
	was, err := m.s.Forget(m.t.Context(), scope, id, "")
	must(m.t, err)
	before := len(m.items)
	m.items = slices.DeleteFunc(m.items, func(i memory.Item) bool { return i.ID == id && i.Scope == scope })
	equal(m.t, "forgotten", was, len(m.items) < before)
}

// compare compares the results of one search.
func (m *naiveMemory) compare(r *rand.Rand, scope memory.Scope) {
	q := memory.Query{Scope: scope, Text: words(r), Limit: 1 + r.IntN(30)}
	if r.IntN(5) == 0 {
		q.Text = ""
	}
	if r.IntN(3) == 0 {
		q.Kind = memory.Kinds()[r.IntN(3)]
	}
	if r.IntN(3) == 0 {
		q.Since = startTime().Add(time.Duration(r.IntN(20)) * time.Second)
	}
	q.Keyed = r.IntN(4) == 0
	found, err := m.s.Recall(m.t.Context(), q)
	must(m.t, err)
	got := []string{}
	for i := range found.Items {
		got = append(got, found.Items[i].ID)
	}
	want := m.naive(q)
	if len(want) > 1 {
		m.found++
	}
	if found.Total != len(want) || !reflect.DeepEqual(got, want[:min(len(want), q.Limit)]) {
		m.t.Fatalf("%+v\nfound %d %v\nwant  %d %v", q, found.Total, got, len(want), want)
	}
}

// naive scans every item.
func (m *naiveMemory) naive(q memory.Query) []string {
	terms := memory.SearchTerms(q.Text)
	stats := memory.Stats{With: make([]int, len(terms))}
	var list []memory.Candidate
	names := map[int64]string{}
	for i := range m.items {
		x := &m.items[i]
		if x.Scope != q.Scope {
			continue
		}
		held := x.Terms()
		stats.Items++
		stats.Words += len(held)
		hit := strings.TrimSpace(q.Text) == ""
		for j, term := range terms {
			if slices.ContainsFunc(held, func(h string) bool { return h == term.Text || term.Prefix && strings.HasPrefix(h, term.Text) }) {
				stats.With[j]++
				hit = true
			}
		}
		if hit && q.Matches(x) {
			names[m.order[x.ID]] = x.ID
			list = append(list, memory.Candidate{Terms: held, At: x.At, Seq: m.order[x.ID]})
		}
	}
	memory.Rank(terms, stats, list)
	out := []string{}
	for _, c := range list {
		out = append(out, names[c.Seq])
	}
	return out
}
