package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/memory"
	"github.com/weir-run/weir/server"
)

// memoryPage is an answer of GET /v1/memory.
type memoryPage struct {
	Items []struct{ Text string }
	Next  string
}

func TestMemoryIsListedInPages(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{RequireToken: true})
	const items = 530 // more than a page of the store
	rememberShips(t, p, items)
	ada, bob, root := p.anyone("ada").Token, p.anyone("bob").Token, p.client("root", server.Admin).Token
	for _, c := range []struct {
		name, token, query string
		want               func(i int) bool
	}{
		{"of a user", ada, "", func(i int) bool { return i%3 < 2 }},
		{"of another user", bob, "", func(i int) bool { return i%3 == 2 }},
		{"of all users", root, "", func(int) bool { return true }},
		{"of one user, read by an administrator", root, "user=bob", func(i int) bool { return i%3 == 2 }},
		{"with a text of the tags, in another case", root, "text=quay-1", func(i int) bool { return i/500 == 1 }},
		{"with a text that the oldest item has", ada, "text=" + url.QueryEscape("SHIP 0"), func(i int) bool { return i == 0 }},
		{"with a text that items of others have", ada, "text=" + url.QueryEscape("bob's"), func(int) bool { return false }},
		{"of a kind that nothing has", root, "kind=episode", func(int) bool { return false }},
	} {
		for _, limit := range []int{23, 200} {
			var want []string
			for i := items - 1; i >= 0; i-- {
				if c.want(i) {
					want = append(want, shipText(i))
				}
			}
			got := p.allMemory(t, c.token, fmt.Sprintf("%s&limit=%d", c.query, limit))
			if !slices.Equal(got, want) {
				t.Errorf("%s in pages of %d: %d items, want %d", c.name, limit, len(got), len(want))
			}
		}
	}
}

func TestCursorsOfOtherListsAreRefusedForMemory(t *testing.T) {
	t.Parallel()
	p := openProcess(t, t.TempDir(), server.Options{})
	for _, cursor := range []string{"x", "12", "12.", ".m1", "1e3.m1"} {
		if got := p.send(http.MethodGet, "/v1/memory?cursor="+cursor, "", nil); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "query.cursor") {
			t.Errorf("cursor %s: %d %s", cursor, got.status, got.body)
		}
	}
}

// shipText is the text of an item: two of three are ada's, the others bob's.
func shipText(i int) string {
	return fmt.Sprintf("%s's ship %d", []string{"ada", "ada", "bob"}[i%3], i)
}

// rememberShips writes items, 7 of them in each millisecond.
func rememberShips(t *testing.T, p *process, items int) {
	t.Helper()
	start := time.Now()
	for i := range items {
		_, err := p.app.Store.Remember(t.Context(), memory.Write{
			Scope: memory.Scope{Namespace: "berths", User: shipText(i)[:3]}, Kind: memory.Fact, Key: fmt.Sprint("key ", i),
			Text: shipText(i), Tags: []string{fmt.Sprint("Quay-", i/500)}, Now: start.Add(time.Duration(i/7) * time.Millisecond),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// allMemory reads all pages of a list and returns the texts.
func (p *process) allMemory(t *testing.T, token, query string) (out []string) {
	t.Helper()
	for cursor := ""; ; {
		got := p.send(http.MethodGet, "/v1/memory?"+query+"&cursor="+url.QueryEscape(cursor), "", withToken(token))
		var page memoryPage
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != http.StatusOK {
			t.Fatalf("%s: %d %s (%v)", query, got.status, got.body, err)
		}
		for _, x := range page.Items {
			out = append(out, x.Text)
		}
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}
