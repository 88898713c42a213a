package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/lru"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/store"
)

// The kinds of documents of quotas.
const (
	quotaKind = store.QuotaKind // by account, deleted with its user
	// QuotaDayKind are the accounts of one UTC day, by ACCOUNT@DAY, deleted with the user and
	// due when they are no longer of use.
	QuotaDayKind = store.QuotaDayKind
)

// Everyone is the account whose quota applies to each user without one.
const Everyone = "user:*"

// UserAccount is the account of a user, and TokenAccount that of a token, by its id.
func UserAccount(user string) string { return "user:" + user }

// TokenAccount is the account of a token.
func TokenAccount(token string) string { return "token:" + token }

// Quota bounds what the runs of a user, or those that a token has started, may spend on a UTC
// day. A bound of 0 is none.
type Quota struct {
	// Account is UserAccount, TokenAccount or Everyone.
	Account string `json:"account"`
	// User is the user with whom the quota is deleted; "" for Everyone.
	User   string `json:"-"`
	Calls  int    `json:"calls"`
	Tokens int    `json:"tokens"`
	// CostMicros is in millionths of a US dollar.
	CostMicros int64     `json:"cost"`
	By         string    `json:"by"`
	Changed    time.Time `json:"changed"`
}

// QuotaDay is what was spent on a day, and what calls in flight have reserved.
type QuotaDay struct {
	Used     engine.Usage `json:"used"`
	Reserved engine.Usage `json:"reserved"`
}

// Quotas are the quotas of a store, for all processes on it. Its methods may be called
// concurrently.
type Quotas struct {
	// Wait is how long a call waits for calls in flight to release what they have reserved.
	Wait time.Duration

	store  *store.Full
	logger *slog.Logger

	mu      sync.Mutex // guards the following fields, and is held while the store is read
	quotas  map[string]Quota
	read    time.Time
	origins lru.Map[string, string] // the origin of the root of a run
	locks   [64]sync.Mutex          // of accounts, so that calls of this process do not disturb each other
}

const (
	// quotaAge is how old the quotas may be that a call is bounded by.
	quotaAge = time.Second
	// quotaWait is Quotas.Wait of NewQuotas, and bounds how long settling takes.
	quotaWait = 30 * time.Second
	// quotaKept is how long a day is kept.
	quotaKept = 40 * 24 * time.Hour
	// minQuotaOutput is how many tokens of an answer a quota must leave for a call to be made.
	minQuotaOutput = 64
	maxOrigins     = 10_000
)

// NewQuotas returns the quotas of a store. One without documents has none.
func NewQuotas(s *store.Full, logger *slog.Logger) *Quotas {
	return &Quotas{Wait: quotaWait, store: s, logger: logger, origins: lru.Map[string, string]{Max: maxOrigins}}
}

// List returns all quotas by account.
func (q *Quotas) List(ctx context.Context) (map[string]Quota, error) {
	out := make(map[string]Quota)
	for after := ""; ; {
		docs, err := q.store.Documents(ctx, store.DocumentFilter{Kind: quotaKind, After: after})
		if err != nil || len(docs) == 0 {
			return out, err
		}
		for i := range docs {
			var x Quota
			if err := json.Unmarshal(docs[i].Body, &x); err != nil {
				return nil, fmt.Errorf("read quota %s: %w", docs[i].ID, err)
			}
			x.Account, x.User, x.Changed = docs[i].ID, docs[i].User, docs[i].Updated.UTC()
			out[x.Account] = x
		}
		after = docs[len(docs)-1].ID
	}
}

// Set keeps a quota, or removes it if it bounds nothing. Within a second it applies in every
// process on the store.
func (q *Quotas) Set(ctx context.Context, x Quota) error {
	defer q.forget()
	if x.Calls == 0 && x.Tokens == 0 && x.CostMicros == 0 {
		if err := q.store.DeleteDocument(ctx, quotaKind, x.Account, 0); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return nil
	}
	body, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return q.change(ctx, store.Document{Kind: quotaKind, ID: x.Account, User: x.User}, func(d *store.Document) error {
		d.Body = body
		return nil
	})
}

func (q *Quotas) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.read = time.Time{}
}

// present are the quotas as they were within quotaAge.
func (q *Quotas) present(ctx context.Context) (map[string]Quota, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.read) < quotaAge {
		return q.quotas, nil
	}
	list, err := q.List(ctx)
	if err != nil {
		return nil, err
	}
	q.quotas, q.read = list, time.Now()
	return list, nil
}

// change reads a document, or begins with d, and keeps what do makes of it. Two changes at the
// same time happen one after the other.
func (q *Quotas) change(ctx context.Context, d store.Document, do func(d *store.Document) error) error {
	for try := 0; ; try++ {
		next := d
		have, err := q.store.Document(ctx, d.Kind, d.ID)
		if err == nil {
			next.Version, next.Body = have.Version, have.Body
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := do(&next); err != nil {
			return err
		}
		_, err = q.store.PutDocument(ctx, next)
		if !errors.Is(err, store.ErrChanged) && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		// Another process was faster: they do not try again at the same moment.
		select {
		case <-time.After(rand.N(time.Duration(min(try+1, 20)) * time.Millisecond)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// dayBody is the body of a day.
type dayBody struct {
	Used engine.Usage `json:"used"`
	// Reserved are the calls in flight by their keys. What a process that died has reserved
	// stays: such a call may have been made.
	Reserved map[string]engine.Usage `json:"reserved,omitempty"`
	// Near are the limits of the quota of which 80% are used, if webhooks are told.
	Near string `json:"near,omitempty"`
}

func (b *dayBody) sum() (u engine.Usage) {
	for _, x := range b.Reserved { // order: a sum
		u = u.Add(x)
	}
	return u
}

// Day returns what an account has spent on the present UTC day.
func (q *Quotas) Day(ctx context.Context, account string) (QuotaDay, error) {
	var b dayBody
	d, err := q.store.Document(ctx, QuotaDayKind, dayID(account, time.Now()))
	if err == nil {
		err = json.Unmarshal(d.Body, &b)
	} else if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return QuotaDay{b.Used, b.sum()}, err
}

func dayID(account string, at time.Time) string {
	return account + "@" + at.UTC().Format(time.DateOnly)
}

// changeDay changes the account of a day that a quota bounds.
func (q *Quotas) changeDay(ctx context.Context, id, user string, x *Quota, do func(b *dayBody) error) error {
	lock := &q.locks[hashOf(id)%uint32(len(q.locks))]
	lock.Lock()
	defer lock.Unlock()
	return q.change(ctx, store.Document{Kind: QuotaDayKind, ID: id, User: user, Due: time.Now().Add(quotaKept)}, func(d *store.Document) error {
		var b dayBody
		if d.Body != nil {
			if err := json.Unmarshal(d.Body, &b); err != nil {
				return fmt.Errorf("read quota of %s: %w", id, err)
			}
		}
		err := do(&b)
		if err == nil {
			err = q.noteNear(ctx, id, user, x, &b)
		}
		if err == nil {
			d.Body, err = json.Marshal(b)
		}
		return err
	})
}

// noteNear leaves a document for webhooks if 80% of a quota are used, before the account says so: a process that ends between the
// two leaves it again, and the deliveries that follow from it are the same.
func (q *Quotas) noteNear(ctx context.Context, id, user string, x *Quota, b *dayBody) error {
	limits := x.bounds()
	if b.Near == limits || !engine.Near(engine.Usage{Calls: x.Calls, Input: x.Tokens, CostMicros: x.CostMicros}, b.Used) {
		return nil
	}
	day := id[len(id)-len(time.DateOnly):]
	body, err := json.Marshal(store.QuotaNear{Account: x.account(user), Day: day, Limits: limits})
	if err != nil {
		return err
	}
	_, err = q.store.PutDocument(ctx, store.Document{Kind: store.QuotaNearKind, ID: id + " " + limits, User: user, Body: body, Due: time.Now()})
	if err != nil && !errors.Is(err, store.ErrExists) {
		return err
	}
	b.Near = limits
	return nil
}

func hashOf(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// quotaHold is what a call has reserved.
type quotaHold struct {
	q     *Quotas
	key   string
	user  string
	days  []string // the accounts of the day on which it was reserved
	quota []Quota  // of these
}

// Any implements runner.Quotas. If the quotas cannot be read, Reserve says why.
func (q *Quotas) Any(ctx context.Context) bool {
	if q.store.Capabilities().Documents == nil {
		return false
	}
	all, err := q.present(ctx)
	return err != nil || len(all) > 0
}

// Reserve implements runner.Quotas.
func (q *Quotas) Reserve(ctx context.Context, c runner.QuotaCall) (runner.QuotaHold, error) {
	if q.store.Capabilities().Documents == nil {
		return nil, nil
	}
	all, err := q.present(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	applying, err := q.applying(ctx, all, &c)
	if err != nil || len(applying) == 0 {
		return nil, err
	}
	h := &quotaHold{q: q, key: c.Key, user: c.User}
	now := time.Now()
	for i := range applying {
		x := &applying[i]
		if x.CostMicros > 0 && c.Reserve.Unpriced != "" {
			h.Settle(context.WithoutCancel(ctx), engine.Usage{})
			return nil, &engine.Error{
				Code: engine.CodeModelUnpriced, Permanent: true,
				Message: fmt.Sprintf("the quota of %s bounds the cost, and nothing is known of what the model %s costs", x.name(), c.Reserve.Unpriced),
			}
		}
		if err := h.reserve(ctx, x, dayID(x.account(c.User), now), &c); err != nil {
			h.Settle(context.WithoutCancel(ctx), engine.Usage{})
			return nil, err
		}
	}
	return h, nil
}

// applying are the quotas that bound a call: that of its user, or of everyone, and that of the
// token that started it.
func (q *Quotas) applying(ctx context.Context, all map[string]Quota, c *runner.QuotaCall) (out []Quota, err error) {
	if x, ok := all[UserAccount(c.User)]; ok && c.User != "*" {
		out = append(out, x)
	} else if x, ok := all[Everyone]; ok && c.User != "" {
		out = append(out, x)
	}
	origin, err := q.originOf(ctx, c)
	if err != nil {
		return nil, err
	}
	// A schedule or webhook could have the name of a token.
	if kind, token, ok := strings.Cut(origin, ":"); ok && !slices.Contains([]string{"schedule", "webhook", "file", "session"}, kind) {
		if x, ok := all[TokenAccount(token)]; ok {
			out = append(out, x)
		}
	}
	return out, nil
}

// originOf is what started the run at the root of that of a call.
func (q *Quotas) originOf(ctx context.Context, c *runner.QuotaCall) (string, error) {
	if c.Parent == "" {
		return c.Origin, nil
	}
	q.mu.Lock()
	known, ok := q.origins.Get(c.Parent)
	q.mu.Unlock()
	if ok {
		return known, nil
	}
	for id := c.Parent; ; {
		r, err := q.store.Run(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if r.Parent == "" {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.origins.Put(c.Parent, r.Origin)
			return r.Origin, nil
		}
		id = r.Parent
	}
}

// account is the account of a quota for a user.
func (x *Quota) account(user string) string {
	if x.Account == Everyone {
		return UserAccount(user)
	}
	return x.Account
}

// name describes a quota.
func (x *Quota) name() string {
	kind, name, _ := strings.Cut(x.Account, ":")
	if x.Account == Everyone {
		return "each user"
	}
	return kind + " " + Printable(name)
}

// errBusy: calls in flight have reserved what a call needs.
var errBusy = errors.New("others have reserved the rest of the quota")

// reserve reserves a call in one account. It waits a while if calls in flight have reserved
// what it needs.
func (h *quotaHold) reserve(ctx context.Context, x *Quota, day string, c *runner.QuotaCall) error {
	until := time.Now().Add(h.q.Wait)
	for {
		err := h.q.changeDay(ctx, day, h.user, x, func(b *dayBody) error { return x.take(b, c) })
		if err == nil {
			h.days, h.quota = append(h.days, day), append(h.quota, *x)
			return nil
		}
		if !errors.Is(err, errBusy) {
			return err
		}
		if time.Now().After(until) {
			return x.exceeded()
		}
		select {
		case <-time.After(50*time.Millisecond + rand.N(100*time.Millisecond)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take reserves a call in the account of a day, with a shorter answer if less is left.
func (x *Quota) take(b *dayBody, c *runner.QuotaCall) error {
	if was, ok := b.Reserved[c.Key]; ok {
		// The process of an earlier try ended: whether that was made is not known.
		b.Used = b.Used.Add(was)
		delete(b.Reserved, c.Key)
	}
	r := c.Reserve
	fits := func(spent engine.Usage) (output int) {
		output = r.Output
		if x.Calls > 0 && spent.Calls+r.Calls > x.Calls {
			return -1
		}
		if x.Tokens > 0 {
			output = min(output, x.Tokens-spent.Tokens()-r.Input)
		}
		if left := x.CostMicros - spent.CostMicros - (r.CostMicros - r.OutputCost); x.CostMicros > 0 && left < r.OutputCost {
			output = min(output, int(int64(r.Output)*max(left, -1)/max(r.OutputCost, 1)))
		}
		return output
	}
	least := min(minQuotaOutput, r.Output)
	output := fits(b.Used.Add(b.sum()))
	if output < least {
		if len(b.Reserved) > 0 && fits(b.Used) >= least {
			return errBusy
		}
		return x.exceeded()
	}
	if output < r.Output {
		cost := r.OutputCost * int64(output) / int64(r.Output)
		r.CostMicros, r.OutputCost = r.CostMicros-r.OutputCost+cost, cost
		r.Output, r.HasBudget = output, true
	}
	if b.Reserved == nil {
		b.Reserved = make(map[string]engine.Usage)
	}
	b.Reserved[c.Key] = r.Usage
	return nil
}

func (x *Quota) exceeded() error {
	return &engine.Error{
		Code: engine.CodeQuota, Permanent: true,
		Message: fmt.Sprintf("the quota of %s for this day (UTC) does not cover the call: %s", x.name(), x.bounds()),
	}
}

func (x *Quota) bounds() string {
	var out []string
	if x.Calls > 0 {
		out = append(out, fmt.Sprintf("%d calls", x.Calls))
	}
	if x.Tokens > 0 {
		out = append(out, fmt.Sprintf("%d tokens", x.Tokens))
	}
	if x.CostMicros > 0 {
		out = append(out, fmt.Sprintf("$%.2f", float64(x.CostMicros)/1e6))
	}
	return strings.Join(out, ", ")
}

// More implements runner.QuotaHold.
func (h *quotaHold) More(ctx context.Context, spent engine.Usage) error {
	for i, day := range h.days {
		x := &h.quota[i]
		err := h.q.changeDay(ctx, day, h.user, x, func(b *dayBody) error {
			sum := b.Used.Add(b.sum()).Add(spent)
			if x.Calls > 0 && sum.Calls > x.Calls || x.Tokens > 0 && sum.Tokens() > x.Tokens || x.CostMicros > 0 && sum.CostMicros > x.CostMicros {
				return x.exceeded()
			}
			if b.Reserved == nil {
				b.Reserved = make(map[string]engine.Usage)
			}
			b.Reserved[h.key] = b.Reserved[h.key].Add(spent)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Settle implements runner.QuotaHold. If the store fails, the reservation stays.
func (h *quotaHold) Settle(ctx context.Context, used engine.Usage) {
	ctx, cancel := context.WithTimeout(ctx, quotaWait)
	defer cancel()
	for i, day := range h.days {
		err := h.q.changeDay(ctx, day, h.user, &h.quota[i], func(b *dayBody) error {
			delete(b.Reserved, h.key)
			b.Used = b.Used.Add(used)
			return nil
		})
		if err != nil {
			h.q.logger.WarnContext(ctx, "settle a quota", "call", h.key, "error", err)
		}
	}
}
