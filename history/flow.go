package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/store"
)

// RecordedFlow returns the flow of a run for reading its record: fingerprint and specs are
// those in its first event. It needs no node types if the specs are stored. Otherwise it
// asks c, which may be nil, and infers the ports of the types that c lacks from the edges;
// inferred lists those types.
func RecordedFlow(ctx context.Context, s store.Flows, c flow.Catalogue, fingerprint, specs string) (f *flow.Flow, inferred []string, err error) {
	r := flow.RecordedFlows{ByFingerprint: func(fp string) ([]byte, error) { return s.Flow(ctx, fp) }, Types: c}
	if r.Specs, err = StoredSpecs(ctx, s, specs); err != nil {
		return nil, nil, err
	}
	return r.Read(fingerprint)
}

// StoredSpecs returns the descriptions of node types that are stored under a digest, nil
// if there are none.
func StoredSpecs(ctx context.Context, s store.Flows, digest string) (specs *flow.Specs, err error) {
	if digest == "" {
		return nil, nil
	}
	data, err := s.Flow(ctx, digest)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		specs, err = flow.DecodeSpecs(data)
	}
	if err != nil {
		return nil, fmt.Errorf("node types %s: %w", digest, err)
	}
	return specs, nil
}
