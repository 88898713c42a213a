package runner

import "github.com/weir-run/weir/store"

// Store is a store.
type Store = store.Store
