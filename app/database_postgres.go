//go:build postgres

package app

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/store"
	"github.com/weir-run/weir/store/codec"
	"github.com/weir-run/weir/store/postgres"
)

func openServer(ctx context.Context, url string, o DatabaseOptions) (*Database, error) {
	open := postgres.Open
	if o.ReadOnly {
		open = postgres.OpenExisting
	}
	c, err := newCodec(&o.Storage)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, url, postgres.Options{Codec: c})
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
	return &Database{Full: store.Complete(s), Note: s.Note(), Settings: settings, RewrapKeys: s.RewrapKeys}, nil
}

// newCodec reads the master keys.
func newCodec(s *config.Storage) (*codec.Codec, error) {
	o := codec.Options{Compress: s.Compress}
	read := func(what string, k config.Key) (out codec.MasterKey, err error) {
		value, err := k.Value()
		if err == nil {
			out, err = codec.ParseMasterKey(value)
		}
		if err != nil {
			err = fmt.Errorf("storage.encryption.%s (%s): %w", what, k, err)
		}
		return out, err
	}
	if k := s.Encryption.Key; k.Set() {
		key, err := read("key", k)
		if err != nil {
			return nil, err
		}
		o.Key = &key
	}
	for i, k := range s.Encryption.Previous {
		key, err := read(fmt.Sprintf("previous[%d]", i), k)
		if err != nil {
			return nil, err
		}
		o.Previous = append(o.Previous, key)
	}
	return codec.New(o), nil
}
