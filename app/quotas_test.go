package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// openQuotas opens the quotas of a database, as one process does.
func openQuotas(t *testing.T, path string) *app.Quotas {
	t.Helper()
	d, err := app.OpenDatabase(t.Context(), path, app.DatabaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	q := app.NewQuotas(d.Full, slog.New(slog.DiscardHandler))
	q.Wait = 50 * time.Millisecond
	return q
}

func callOf(user, origin string, n int) runner.QuotaCall {
	return runner.QuotaCall{
		Run: "r", User: user, Origin: origin, Key: fmt.Sprint("r/n/model#", n),
		Reserve: &node.Reserve{Usage: engine.Usage{Calls: 1, Input: 100, Output: 100, CostMicros: 300}, OutputCost: 200},
	}
}

func code(err error) string {
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

// TestQuotasApplyToWhomTheyName enumerates quotas, users and what started the run.
func TestQuotasApplyToWhomTheyName(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		account string
		bound   map[string]bool // by user and origin
	}{
		"of a user":     {app.UserAccount("ada"), map[string]bool{"ada/api": true, "ada/api:t1": true, "bob/api": false, "/api": false}},
		"of each user":  {app.Everyone, map[string]bool{"ada/api": true, "bob/schedule:x": true, "/api": false}},
		"of a token":    {app.TokenAccount("t1"), map[string]bool{"ada/api:t1": true, "bob/openai:t1": true, "ada/api:t2": false, "ada/api": false, "ada/schedule:t1": false}},
		"of the user *": {app.UserAccount("ada"), map[string]bool{"*/api": false}},
	} {
		q := openQuotas(t, filepath.Join(t.TempDir(), "weir.db"))
		if held, err := q.Reserve(t.Context(), callOf("ada", "api:t1", 0)); held != nil || err != nil || q.Any(t.Context()) {
			t.Errorf("%s: without quotas: %v, %v", name, held, err)
		}
		if err := q.Set(t.Context(), app.Quota{Account: x.account, Calls: 10}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for who, want := range x.bound {
			n++
			user, origin, _ := cut(who)
			held, err := q.Reserve(t.Context(), callOf(user, origin, n))
			if (held != nil) != want || err != nil {
				t.Errorf("%s: %s is bound: %v, %v", name, who, held != nil, err)
			}
		}
		if err := q.Set(t.Context(), app.Quota{Account: x.account}); err != nil || q.Any(t.Context()) {
			t.Errorf("%s: a removed quota binds: %v", name, err)
		}
	}
}

func cut(s string) (a, b string, ok bool) {
	for i := range s {
		if s[i] == '/' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// TestEachBoundOfAQuotaRefusesTheNextCall enumerates the bounds.
func TestEachBoundOfAQuotaRefusesTheNextCall(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		quota app.Quota
		calls int // that fit
	}{
		"calls":  {app.Quota{Calls: 2}, 2},
		"tokens": {app.Quota{Tokens: 399}, 2}, // the second with a shorter answer
		"input":  {app.Quota{Tokens: 99}, 0},
		"cost":   {app.Quota{CostMicros: 610}, 2},
		"all":    {app.Quota{Calls: 5, Tokens: 250, CostMicros: 5000}, 1},
	} {
		q := openQuotas(t, filepath.Join(t.TempDir(), "weir.db"))
		x.quota.Account = app.UserAccount("ada")
		if err := q.Set(t.Context(), x.quota); err != nil {
			t.Fatal(err)
		}
		for n := range x.calls {
			c := callOf("ada", "api", n)
			held, err := q.Reserve(t.Context(), c)
			if err != nil {
				t.Fatalf("%s: call %d: %v", name, n, err)
			}
			held.Settle(t.Context(), c.Reserve.Usage)
		}
		if _, err := q.Reserve(t.Context(), callOf("ada", "api", 9)); code(err) != engine.CodeQuota {
			t.Errorf("%s: one more: %v", name, err)
		}
		if _, err := q.Reserve(t.Context(), callOf("bob", "api", 9)); err != nil {
			t.Errorf("%s: another user: %v", name, err)
		}
	}
	q := openQuotas(t, filepath.Join(t.TempDir(), "weir.db"))
	if err := q.Set(t.Context(), app.Quota{Account: app.Everyone, CostMicros: 1000}); err != nil {
		t.Fatal(err)
	}
	c := callOf("ada", "api", 1)
	c.Reserve.Unpriced = "fake/m"
	if _, err := q.Reserve(t.Context(), c); code(err) != engine.CodeModelUnpriced {
		t.Errorf("a model without a price: %v", err)
	}
}

// TestAQuotaIsNeverOverspentByProcesses has several processes make calls at the same time,
// some of which die.
func TestAQuotaIsNeverOverspentByProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	processes := []*app.Quotas{openQuotas(t, path), openQuotas(t, path), openQuotas(t, path)}
	if err := processes[0].Set(t.Context(), app.Quota{Account: app.UserAccount("ada"), Calls: 40}); err != nil {
		t.Fatal(err)
	}
	var made, refused, lost atomic.Int64
	var all sync.WaitGroup
	for i, q := range processes {
		all.Go(func() {
			for n := range 20 {
				c := callOf("ada", "api", 100*i+n)
				held, err := q.Reserve(t.Context(), c)
				switch {
				case err == nil && held == nil:
					t.Error("a call is not bound")
				case err != nil:
					refused.Add(1)
				case rand.IntN(10) == 0:
					made.Add(1)
					lost.Add(1) // the process dies: the call stays reserved
				default:
					made.Add(1)
					held.Settle(t.Context(), c.Reserve.Usage)
				}
			}
		})
	}
	all.Wait()
	day, err := processes[1].Day(t.Context(), app.UserAccount("ada"))
	if err != nil || made.Load() > 40 || made.Load()+refused.Load() != 60 || int64(day.Used.Calls) != made.Load()-lost.Load() || int64(day.Reserved.Calls) != lost.Load() {
		t.Errorf("%d made, %d refused, %d lost: %+v, %v", made.Load(), refused.Load(), lost.Load(), day, err)
	}
}

func TestACallThatIsRepeatedAfterACrashIsChargedForBoth(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	q := openQuotas(t, path)
	if err := q.Set(t.Context(), app.Quota{Account: app.UserAccount("ada"), Calls: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Reserve(t.Context(), callOf("ada", "api", 1)); err != nil {
		t.Fatal(err)
	}
	again := openQuotas(t, path)
	c := callOf("ada", "api", 1)
	held, err := again.Reserve(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.More(t.Context(), engine.Usage{Calls: 1}); err != nil {
		t.Errorf("a further try: %v", err)
	}
	if err := held.More(t.Context(), engine.Usage{Calls: 1}); code(err) != engine.CodeQuota {
		t.Errorf("a try without room: %v", err)
	}
	held.Settle(t.Context(), engine.Usage{Calls: 1, Input: 5, Output: 5})
	day, err := again.Day(t.Context(), app.UserAccount("ada"))
	if err != nil || day.Used.Calls != 2 || day.Used.Tokens() != 210 || day.Reserved != (engine.Usage{}) {
		t.Errorf("%+v, %v", day, err)
	}
}

// nearQuotas returns the notices of quotas that are nearly used, and removes them, as a process does that has made their deliveries.
func nearQuotas(t *testing.T, d *store.Full) (out []string) {
	t.Helper()
	list, err := d.Documents(t.Context(), store.DocumentFilter{Kind: store.QuotaNearKind})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		var q store.QuotaNear
		if err := json.Unmarshal(list[i].Body, &q); err != nil || list[i].User != "ada" || list[i].Due.IsZero() {
			t.Errorf("%+v, %v", list[i], err)
		}
		out = append(out, q.Account+" "+q.Limits)
		if err := d.DeleteDocument(t.Context(), store.QuotaNearKind, list[i].ID, 0); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestAQuotaThatIsNearlyUsedIsNoticedOnceForItsLimits has two processes spend a quota of ten calls of a day, which is then
// doubled and spent again.
func TestAQuotaThatIsNearlyUsedIsNoticedOnceForItsLimits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	d, err := app.OpenDatabase(t.Context(), path, app.DatabaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	processes := []*app.Quotas{openQuotas(t, path), openQuotas(t, path)}
	call := 0
	spend := func() {
		t.Helper()
		call++
		held, err := processes[call%2].Reserve(t.Context(), callOf("ada", "api", call))
		if err != nil || held == nil {
			t.Fatal(held, err)
		}
		held.Settle(t.Context(), engine.Usage{Calls: 1})
	}
	for _, phase := range []struct {
		limit, calls int
		want         string
	}{
		{10, 7, "[]"},
		{10, 1, "[user:ada 10 calls]"},
		{10, 2, "[]"},
		{20, 5, "[]"},
		{20, 1, "[user:ada 20 calls]"},
		{20, 4, "[]"},
	} {
		for _, q := range processes { // each reads the limit anew
			if err := q.Set(t.Context(), app.Quota{Account: app.Everyone, Calls: phase.limit}); err != nil {
				t.Fatal(err)
			}
		}
		for range phase.calls {
			spend()
		}
		if got := fmt.Sprint(nearQuotas(t, d.Full)); got != phase.want {
			t.Errorf("after %d calls of %d: %s, not %s", call, phase.limit, got, phase.want)
		}
	}
}
