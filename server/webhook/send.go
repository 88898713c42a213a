package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

const (
	// interval is how often the store is asked for work.
	interval = 500 * time.Millisecond
	// claimTime is how long a process has for the deliveries that it took, sendTime for one.
	claimTime = time.Minute
	sendTime  = 20 * time.Second
	// atOnce is how many deliveries a process sends at the same time, and atOnceForUser how many
	// of the hooks of one user.
	atOnce        = 256
	atOnceForUser = 4
	// claimed is how many deliveries are taken at a time.
	claimed = 16
	// busyPause is how long deliveries wait of a user for whom as many are being sent as may be.
	busyPause = 5 * time.Second
	// keepTime is how long deliveries stay listed after they were delivered or given up.
	keepTime = 7 * 24 * time.Hour
	// maxAnswer is how much of an answer is read, so that the connection can be used again.
	maxAnswer = 64 << 10
	// maxKeptTries is how many tries of a delivery are listed.
	maxKeptTries = 20
)

// pauses returns the times between the tries of a delivery, each up to a fifth longer; after the last one it has
// failed.
func pauses() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	}
}

// Run sends deliveries until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	defer s.flights.all.Wait()
	for {
		if err := s.begin(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.WarnContext(ctx, "webhooks", "error", err)
		}
		select {
		case <-time.After(interval + rand.N(interval/5)):
		case <-ctx.Done():
			return
		}
	}
}

// Step turns the notices that there are into deliveries, tries those that are due once, and
// returns when all tries have ended. Run does not wait for them.
func (s *Sender) Step(ctx context.Context) error {
	if err := s.takeNotices(ctx); err != nil {
		return err
	}
	for {
		list, err := s.o.Store.ClaimDocuments(ctx, deliveryKind, claimTime, claimed)
		if err != nil || len(list) == 0 {
			return err
		}
		var all sync.WaitGroup
		errs := make([]error, len(list))
		for i := range list {
			all.Go(func() { errs[i] = s.handle(ctx, &list[i]) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
}

// takeNotices makes deliveries of notices. Their ids follow from the notice, so that two
// processes that read the same one make the same deliveries.
func (s *Sender) takeNotices(ctx context.Context) error {
	if err := s.takeQuotas(ctx); err != nil {
		return err
	}
	for {
		list, err := s.o.Store.Notices(ctx, 100)
		if err != nil || len(list) == 0 {
			return err
		}
		hooks, err := s.Hooks(ctx, "")
		if err != nil {
			return err
		}
		var done []int64
		for i := range list {
			if err := s.makeDeliveries(ctx, &list[i], hooks); err != nil {
				return err
			}
			done = append(done, list[i].ID)
		}
		if err := s.o.Store.RemoveNotices(ctx, done); err != nil {
			return err
		}
	}
}

func (s *Sender) makeDeliveries(ctx context.Context, n *store.Notice, hooks []*Hook) error {
	run, err := s.o.Runs.Run(ctx, n.Run)
	if errors.Is(err, store.ErrNotFound) {
		return nil // it was deleted meanwhile
	}
	if err != nil || run.Parent != "" && len(n.Budgets) == 0 {
		return err // the questions of a child run are also those of its root
	}
	event, keys := eventOf(n)
	for _, h := range hooks {
		if !slices.Contains(h.Events, event) || h.Flow != "" && h.Flow != run.Flow || !h.All && h.User != run.User {
			continue
		}
		for _, key := range keys {
			if err := s.makeDelivery(ctx, h, n, &run, event, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// eventOf returns the event of a notice, and a key for each delivery that it makes: one for
// each question, or each budget.
func eventOf(n *store.Notice) (event string, keys []string) {
	if len(n.Budgets) > 0 {
		return BudgetNear, n.Budgets
	}
	switch n.Status {
	case engine.Completed:
		return RunCompleted, []string{""}
	case engine.Failed:
		return RunFailed, []string{""}
	case engine.Cancelled:
		return RunCancelled, []string{""}
	default:
		return RunWaiting, n.Waiting
	}
}

// payload is the body of a delivery.
type payload struct {
	Type      string      `json:"type"`
	Timestamp time.Time   `json:"timestamp"`
	Data      payloadData `json:"data"`
}

type payloadData struct {
	Run      string `json:"run"`
	Flow     string `json:"flow"`
	Session  string `json:"session"`
	Status   string `json:"status"`
	Question string `json:"question"` // the id of the question that is open
	// Budget is what is nearly used: "run", "session", "node PATH", or "quota user:NAME" or "quota token:ID".
	Budget string `json:"budget,omitempty"`
}

// makeDelivery makes the delivery of an event to a hook. Its key is a question, a budget, or "".
func (s *Sender) makeDelivery(ctx context.Context, h *Hook, n *store.Notice, run *store.Run, event, key string) error {
	data := payloadData{Run: run.ID, Flow: run.Flow, Session: run.Session, Status: n.Status.String()}
	// A question is reported once, however often other questions come and go meanwhile; the end
	// of a run once for each time that it ends, and a budget for each time that it comes near its limit.
	identity := fmt.Sprint(n.Run, " ", event, " ", key)
	switch event {
	case RunWaiting:
		data.Question = key
	case BudgetNear:
		data.Budget = budgetName(key)
		fallthrough
	default:
		identity += fmt.Sprint(" ", n.Seq)
	}
	return s.deliver(ctx, h, event, n.At.UTC(), run.Created, identity, &data)
}

// budgetName names a budget of a run by its path.
func budgetName(path string) string {
	switch name, ofRun := strings.CutPrefix(path, engine.RunBudget); {
	case ofRun && name == "":
		return "run"
	case ofRun:
		return name
	default:
		return "node " + path
	}
}

// deliver makes a delivery, unless there is one with its identity. The time order comes first in its id, so that a listing by
// id is one by time; it must be the same for every process that makes the delivery.
func (s *Sender) deliver(ctx context.Context, h *Hook, event string, at, order time.Time, identity string, data *payloadData) error {
	text, err := json.Marshal(payload{event, at, *data})
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(identity))
	d := &Delivery{
		ID: fmt.Sprintf("msg_%012x%s", order.UnixMilli(), hex.EncodeToString(sum[:12])), Hook: h.ID, Event: event, Run: data.Run, At: at, State: pending, Tries: []Try{},
		Payload: text, Next: s.o.Clock().UTC(),
	}
	if err := s.save(ctx, d, d.Next); err != nil && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// handle tries a delivery that was claimed, or forgets an old one.
func (s *Sender) handle(ctx context.Context, doc *store.Document) error {
	d, err := deliveryOf(doc)
	if err != nil {
		return err
	}
	if d.State != pending {
		err := s.o.Store.DeleteDocument(ctx, deliveryKind, doc.ID, doc.Version)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrChanged) {
			return nil
		}
		return err
	}
	h, err := s.Hook(ctx, d.Hook)
	if errors.Is(err, store.ErrNotFound) {
		return s.o.Store.DeleteDocument(ctx, deliveryKind, doc.ID, 0)
	}
	if err != nil {
		return err
	}
	if h.Paused {
		return ignoreChanged(s.save(ctx, d, s.o.Clock().Add(claimTime)))
	}
	try := s.send(ctx, h, d)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // another process, or the next one, tries again after claimTime
	}
	return ignoreChanged(s.record(ctx, d, try))
}

// record keeps the outcome of a try.
func (s *Sender) record(ctx context.Context, d *Delivery, try Try) error {
	d.Tries = append(d.Tries, try)
	number := len(d.Tries)
	if number > maxKeptTries {
		d.Tries = d.Tries[number-maxKeptTries:]
	}
	now := s.o.Clock()
	due := now.Add(keepTime)
	switch waits := pauses(); {
	case try.Status/100 == 2:
		d.State, d.Next = delivered, time.Time{}
	case number > len(waits):
		d.State, d.Next = failed, time.Time{}
	default:
		wait := waits[number-1]
		due = now.Add(wait + rand.N(wait/5)).Truncate(time.Millisecond).UTC()
		d.Next = due
	}
	return s.save(ctx, d, due)
}

// ignoreChanged: the delivery was sent again by hand, taken by another process, or deleted.
func ignoreChanged(err error) error {
	if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// send tries to deliver once.
func (s *Sender) send(ctx context.Context, h *Hook, d *Delivery) (t Try) {
	begin := s.o.Clock()
	t.At = begin.UTC()
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(d.Payload))
	if err != nil {
		t.Error = err.Error()
		return t
	}
	stamp := strconv.FormatInt(begin.Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "weir")
	r.Header.Set("Webhook-Id", d.ID)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", s.sign(h, begin, d.ID+"."+stamp+"."+string(d.Payload)))
	a, err := s.http.Do(r)
	if err != nil {
		t.Error = err.Error()
		return t
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(a.Body, maxAnswer))
	t.Status, t.Micros = a.StatusCode, s.o.Clock().Sub(begin).Microseconds()
	if a.StatusCode/100 != 2 {
		t.Error = "the receiver answered " + a.Status
	}
	return t
}

// sign returns the signatures of a text, that with the newest secret first.
func (s *Sender) sign(h *Hook, now time.Time, text string) string {
	one := func(number int) string {
		m := hmac.New(sha256.New, s.secret(h.ID, number))
		m.Write([]byte(text))
		return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
	}
	if h.Key > 0 && now.Before(h.RotatedUntil) {
		return one(h.Key) + " " + one(h.Key-1)
	}
	return one(h.Key)
}
