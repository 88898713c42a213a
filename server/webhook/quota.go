package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/store"
)

// takeQuotas makes deliveries of quotas that are nearly used. Their ids follow from the account, its day and the limits.
func (s *Sender) takeQuotas(ctx context.Context) error {
	for {
		list, err := s.o.Store.ClaimDocuments(ctx, store.QuotaNearKind, claimTime, claimed)
		if err != nil || len(list) == 0 {
			return err
		}
		hooks, err := s.Hooks(ctx, "")
		if err != nil {
			return err
		}
		for i := range list {
			d := &list[i]
			if err := s.reportQuota(ctx, d, hooks); err != nil {
				return err
			}
			if err := ignoreChanged(s.o.Store.DeleteDocument(ctx, store.QuotaNearKind, d.ID, d.Version)); err != nil {
				return err
			}
		}
	}
}

func (s *Sender) reportQuota(ctx context.Context, d *store.Document, hooks []*Hook) error {
	var q store.QuotaNear
	if err := json.Unmarshal(d.Body, &q); err != nil {
		return fmt.Errorf("read the notice of quota %s: %w", d.ID, err)
	}
	day, err := time.Parse(time.DateOnly, q.Day)
	if err != nil {
		return fmt.Errorf("read the notice of quota %s: %w", d.ID, err)
	}
	for _, h := range hooks {
		// A quota belongs to no flow.
		if !slices.Contains(h.Events, BudgetNear) || h.Flow != "" || !h.All && h.User != d.User {
			continue
		}
		data := payloadData{Budget: "quota " + q.Account}
		if err := s.deliver(ctx, h, BudgetNear, d.Created.UTC(), day, fmt.Sprint(BudgetNear, " ", d.ID), &data); err != nil {
			return err
		}
	}
	return nil
}
