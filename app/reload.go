package app

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/llm"
)

// replaceableProvider calls the provider of the configuration that is in force when a call begins.
type replaceableProvider struct {
	current atomic.Pointer[modelServer]
}

func newReplaceableProvider(p modelServer) *replaceableProvider {
	r := &replaceableProvider{}
	r.current.Store(&p)
	return r
}

// Generate implements llm.Provider.
func (r *replaceableProvider) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk)) (*llm.Response, error) {
	return (*r.current.Load()).Generate(ctx, req, emit)
}

// reloading is what a process needs to take a configuration while it runs.
type reloading struct {
	mu        sync.Mutex     // held while a configuration is taken
	first     *config.Config // resolves secrets
	current   *config.Config
	providers map[string]*replaceableProvider
}

// replaceable has the providers of a configuration replaced by Reload.
func (r *reloading) replaceable(list map[string]weir.Provider) {
	r.providers = make(map[string]*replaceableProvider)
	for name, p := range list {
		if s, ok := p.(modelServer); ok && name != ScriptProvider {
			r.providers[name] = newReplaceableProvider(s)
			list[name] = r.providers[name]
		}
	}
}

// Reload takes a configuration that was read again, for calls and requests that begin from then on, and returns the paths of what
// has changed. Secrets, and the key, address, API, organization, project and summary of a provider, can change. If anything else differs, or a
// key cannot be read, the error (config_refused) says so, and everything stays as it is. It may be called concurrently.
//
// A key in a file is read again although its path is the same: such a rotation is not listed.
func (a *App) Reload(o config.Options) ([]string, error) {
	next, err := config.Load(o)
	if err != nil {
		return nil, refusedConfig("%v", err)
	}
	r := &a.reloading
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := config.Compare(r.current, next)
	if len(changes.Fixed) > 0 {
		return nil, refusedConfig("these settings cannot change while the process runs: %s", strings.Join(changes.Fixed, ", "))
	}
	if err := next.CheckKeys(r.current); err != nil {
		return nil, refusedConfig("%v", err)
	}
	r.first.ReplaceSecrets(next)
	for name, p := range r.providers {
		s := providerOf(name, next.Providers[name]) // the key in a file may be another one, although the file is the same
		p.current.Store(&s)
	}
	r.current = next
	return changes.Live, nil
}

func refusedConfig(format string, args ...any) error {
	return &engine.Error{Code: engine.CodeConfigRefused, Permanent: true, Message: "the configuration was not taken, and the earlier one stays in force: " + fmt.Sprintf(format, args...)}
}
