//go:build postgres

package app

import (
	"context"

	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/postgres"
)

func openServer(ctx context.Context, url string, o DatabaseOptions) (*Database, error) {
	open := postgres.Open
	if o.ReadOnly {
		open = postgres.OpenExisting
	}
	s, err := open(ctx, url, postgres.Options{})
	if err != nil {
		return nil, err
	}
	settings := func(ctx context.Context) ([]ServerSetting, error) {
		list, err := s.Settings(ctx)
		out := make([]ServerSetting, len(list))
		for i, x := range list {
			out[i] = ServerSetting(x)
		}
		return out, err
	}
	return &Database{Full: store.Complete(s), Note: s.Note(), Settings: settings}, nil
}
