//go:build !postgres

package app

import (
	"context"

	"github.com/weir-run/weir/store"
)

func openServer(_ context.Context, url string, _ DatabaseOptions) (*Database, error) {
	return nil, usagef("open %s: this program was built without PostgreSQL; build it with `go build -tags postgres ./cmd/weir`, or name a file",
		store.RedactURL(url))
}
