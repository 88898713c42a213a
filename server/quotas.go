package server

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// quotaRow is a quota with what was spent of it today.
type quotaRow struct {
	User   string `json:"user" doc:"Whose runs it bounds; * is each user without a quota, empty for a quota of a token"`
	Token  string `json:"token" doc:"The id of the token whose runs it bounds; empty for a quota of a user"`
	Limits spent  `json:"limits" doc:"What may be spent on a UTC day; 0 is no bound"`
	// Of the quota of each user, what the caller has spent.
	Used     spent     `json:"used" doc:"What was spent today; of the quota *, by you"`
	Reserved spent     `json:"reserved" doc:"What model calls in flight have reserved"`
	Renews   time.Time `json:"renews" doc:"When the next day begins"`
	By       string    `json:"by" doc:"Who set it"`
	Changed  time.Time `json:"changed"`
}

// spent is an amount of model calls.
type spent struct {
	Calls  int     `json:"calls"`
	Tokens int     `json:"tokens"`
	Cost   float64 `json:"cost" doc:"In US dollars"`
}

func spentOf(u *engine.Usage) spent {
	return spent{u.Calls, u.Tokens(), float64(u.CostMicros) / 1e6}
}

type quotaList struct {
	Quotas []quotaRow `json:"quotas"`
}

type setQuotaInput struct {
	Body struct {
		User  string `json:"user,omitempty" maxLength:"200" doc:"Bounds the runs of this user; * is each user without a quota"`
		Token string `json:"token,omitempty" maxLength:"100" doc:"Bounds the runs that the token with this id starts, in place of user"`
		// The bounds keep sums far from overflow.
		Calls  int     `json:"calls,omitempty" minimum:"0" maximum:"1000000000" doc:"Model calls; 0 is no bound, as is a member that is left out"`
		Tokens int     `json:"tokens,omitempty" minimum:"0" maximum:"1000000000000"`
		Cost   float64 `json:"cost,omitempty" minimum:"0" maximum:"1000000" doc:"US dollars. Models without a known price are refused then."`
	}
}

func (s *Server) registerQuotas() {
	tags := []string{"usage"}
	register(s, operation{
		id: "listQuotas", method: http.MethodGet, path: "/v1/quotas", scope: Read, tags: tags, summary: "List quotas with what was spent today",
		description: "Without the scope admin, those that bound you and your tokens.",
	}, listQuotas)
	register(s, operation{
		id: "setQuota", method: http.MethodPut, path: "/v1/quotas", scope: Admin, tags: tags, summary: "Bound what a user or a token may spend on a day",
		description: "Each model call reserves the most that it can use before it starts, in all processes on the store; without room it fails with quota_exceeded. Without any bound the quota is removed.",
	}, setQuota)
}

func listQuotas(c *call, _ *struct{}) (*body[quotaList], error) {
	if c.app.Quotas == nil {
		return nil, &store.Unsupported{Capability: "documents"}
	}
	all, err := c.app.Quotas.List(c)
	if err != nil {
		return nil, err
	}
	out := quotaList{Quotas: []quotaRow{}}
	for _, account := range slices.Sorted(maps.Keys(all)) {
		x := all[account]
		if !c.who.all && account != app.Everyone && x.User != c.who.user {
			continue
		}
		row, err := c.quotaRow(&x)
		if err != nil {
			return nil, err
		}
		out.Quotas = append(out.Quotas, row)
	}
	return bodyOf(out), nil
}

func (c *call) quotaRow(x *app.Quota) (quotaRow, error) {
	account := x.Account
	if account == app.Everyone {
		account = app.UserAccount(c.who.user)
	}
	day, err := c.app.Quotas.Day(c, account)
	row := quotaRow{
		Limits: spent{x.Calls, x.Tokens, float64(x.CostMicros) / 1e6}, Used: spentOf(&day.Used), Reserved: spentOf(&day.Reserved),
		Renews: time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour), By: x.By, Changed: x.Changed,
	}
	kind, name, _ := strings.Cut(x.Account, ":")
	if kind == "token" {
		row.Token = name
	} else {
		row.User = name
	}
	return row, err
}

// costBound is a bound in millionths of a US dollar. A bound below one of these is not rounded to
// none.
func costBound(dollars float64) int64 {
	if dollars <= 0 {
		return 0
	}
	return max(1, int64(math.Round(dollars*1e6)))
}

func setQuota(c *call, in *setQuotaInput) (*body[quotaRow], error) {
	if c.app.Quotas == nil {
		return nil, &store.Unsupported{Capability: "documents"}
	}
	b := &in.Body
	x := app.Quota{Calls: b.Calls, Tokens: b.Tokens, CostMicros: costBound(b.Cost), By: c.by()}
	switch {
	case (b.User == "") == (b.Token == ""):
		return nil, invalidRequest("body", "give either a user or a token")
	case b.User != "":
		if err := runner.CheckName("user", b.User); err != nil {
			return nil, err
		}
		if x.Account = app.UserAccount(b.User); x.Account != app.Everyone {
			x.User = b.User
		}
	default:
		list, err := c.app.Store.Tokens(c, "")
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(t store.Token) bool { return t.ID == b.Token })
		if i < 0 {
			return nil, notFound("token", b.Token)
		}
		x.Account, x.User = app.TokenAccount(b.Token), list[i].User
	}
	if err := errors.Join(c.about("user", x.User), c.about("token", b.Token)); err != nil {
		return nil, err
	}
	if err := c.app.Quotas.Set(context.WithoutCancel(c), x); err != nil {
		return nil, err
	}
	row, err := c.quotaRow(&x)
	row.Changed = time.Now().UTC().Truncate(time.Millisecond)
	return bodyOf(row), err
}
