package webhook

import (
	"context"
	"sync"

	"github.com/weir-run/weir/store"
)

// flights counts the deliveries that are being sent.
type flights struct {
	all sync.WaitGroup

	mu     sync.Mutex
	total  int
	byUser map[string]int
}

// take reserves a place for a delivery of a user; false if the user has as many as may be.
func (f *flights) take(user string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byUser[user] >= atOnceForUser {
		return false
	}
	if f.byUser == nil {
		f.byUser = make(map[string]int)
	}
	f.byUser[user]++
	f.total++
	return true
}

func (f *flights) release(user string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total--
	if f.byUser[user]--; f.byUser[user] == 0 {
		delete(f.byUser, user)
	}
}

// free returns how many more deliveries may be sent.
func (f *flights) free() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return atOnce - f.total
}

// begin turns the notices that there are into deliveries, and begins to send those that are
// due. It does not wait for receivers: a slow one delays only the deliveries of its user.
func (s *Sender) begin(ctx context.Context) error {
	for {
		// Deliveries that wait for others of their user can be due again before all were looked at.
		if err := s.takeNotices(ctx); err != nil {
			return err
		}
		free := s.flights.free()
		if free <= 0 {
			return nil
		}
		list, err := s.o.Store.ClaimDocuments(ctx, deliveryKind, claimTime, min(free, claimed))
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if err := s.beginOne(ctx, &list[i]); err != nil {
				return err
			}
		}
	}
}

// beginOne sends a delivery that was claimed, or has it wait for others of its user.
func (s *Sender) beginOne(ctx context.Context, doc *store.Document) error {
	if !s.flights.take(doc.User) {
		later := *doc
		later.Due = s.o.Clock().Add(busyPause)
		_, err := s.o.Store.PutDocument(ctx, later)
		return ignoreChanged(err)
	}
	s.flights.all.Go(func() {
		defer s.flights.release(doc.User)
		if err := s.handle(ctx, doc); err != nil && ctx.Err() == nil {
			s.o.Logger.WarnContext(ctx, "webhooks", "delivery", doc.ID, "error", err)
		}
	})
	return nil
}
