package node

import "context"

// UseKind is a kind of thing outside the run that an effect uses.
type UseKind string

// The kinds of things that flows which clients put into a server may use only if an owner
// has granted them.
const (
	UseProvider UseKind = "provider"
	UseTool     UseKind = "tool"
	UseExecutor UseKind = "executor"
	UseHost     UseKind = "host"
	UseSecret   UseKind = "secret"
	UseFile     UseKind = "file" // of this machine
)

// Use is one thing outside the run that an effect uses. The zero value is nothing.
type Use struct {
	Kind UseKind
	Name string
}

type hostsKey struct{}

// WithHosts returns a context of an effect whose requests may go only to hosts for which
// allowed is true, redirects included. The host has a port if the URL has one.
func WithHosts(ctx context.Context, allowed func(host string) bool) context.Context {
	return context.WithValue(ctx, hostsKey{}, allowed)
}

// AllowsHost reports whether a request of the effect may go to a host.
func AllowsHost(ctx context.Context, host string) bool {
	allowed, limited := ctx.Value(hostsKey{}).(func(string) bool)
	return !limited || allowed(host)
}
