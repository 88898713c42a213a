package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/store"
)

// workInBackground does what no request asks for until the server drains: it sends webhooks,
// fires triggers and deletes links, logins and files that have expired. Every process on the store does; they share the work.
func (s *Server) workInBackground() (wait func()) {
	if s.app.Store.Capabilities().Documents == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		<-s.draining
		cancel()
	})
	all.Go(func() { s.hooks.Run(ctx) })
	all.Go(func() { s.triggers.Run(ctx) })
	all.Go(func() { s.deleteExpired(ctx) })
	all.Go(func() { s.trimAudit(ctx) })
	all.Go(func() { s.maintain(ctx) })
	return func() {
		all.Wait()
		s.backups.all.Wait()
	}
}

// deleteExpired deletes links, logins and files that have expired, days of quotas that are no longer of use, and what is known of files that have gone, as
// long as ctx lasts.
func (s *Server) deleteExpired(ctx context.Context) {
	tick := time.NewTicker(s.options.Sweep)
	defer tick.Stop()
	for {
		for _, kind := range []string{linkKind, loginKind, app.QuotaDayKind, store.TriggerFileKind} {
			if err := s.deleteDue(ctx, kind); err != nil && ctx.Err() == nil {
				s.logger.WarnContext(ctx, "delete what has expired", "kind", kind, "error", err)
			}
		}
		if err := s.files.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.logger.WarnContext(ctx, "delete files that have expired", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// deleteDue deletes documents of a kind that are due.
func (s *Server) deleteDue(ctx context.Context, kind string) error {
	list, err := s.app.Store.ClaimDocuments(ctx, kind, time.Hour, 100)
	for i := range list {
		if e := s.app.Store.DeleteDocument(ctx, kind, list[i].ID, 0); e != nil && !errors.Is(e, store.ErrNotFound) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// maintain makes backups and deletes what retention policies select, when that is due, as long as ctx lasts.
func (s *Server) maintain(ctx context.Context) {
	tick := time.NewTicker(s.options.Sweep)
	defer tick.Stop()
	for {
		if err := s.backUpOnSchedule(ctx); err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "make a backup", "error", err)
		}
		if err := s.applyRetention(ctx); err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "delete what retention policies select", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
