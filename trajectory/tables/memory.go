package tables

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-run/weir/trajectory"
)

// Memory are tables that end with the process.
type Memory struct {
	mu   sync.RWMutex
	rows map[trajectory.Key]Rows // mu
}

// NewMemory returns empty tables.
func NewMemory() *Memory { return &Memory{rows: map[trajectory.Key]Rows{}} }

// Replace stores the rows of a round.
func (m *Memory) Replace(ctx context.Context, r Rows) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[r.key()] = r.clone()
	return nil
}

// Rows returns the rows of a round, or trajectory.ErrNotFound.
func (m *Memory) Rows(ctx context.Context, k trajectory.Key) (Rows, error) {
	if err := ctx.Err(); err != nil {
		return Rows{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	r, ok := m.rows[k]
	if !ok {
		return Rows{}, fmt.Errorf("%s: %w", k, trajectory.ErrNotFound)
	}
	return r.clone(), nil
}

// Rounds returns the keys that fit the filter.
func (m *Memory) Rounds(ctx context.Context, f trajectory.Filter) ([]trajectory.Key, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.keys(f), nil
}

func (m *Memory) keys(f trajectory.Filter) []trajectory.Key {
	var out []trajectory.Key
	for k := range m.rows {
		if f.Match(k) {
			out = append(out, k)
		}
	}
	return trajectory.SortKeys(out)
}

// Nodes returns the rows of one type.
func (m *Memory) Nodes(ctx context.Context, t trajectory.Type, f trajectory.Filter) ([]Node, error) {
	return collect(ctx, m, f, func(r Rows) []Node { return r.Nodes[t] })
}

// Edges returns the edges.
func (m *Memory) Edges(ctx context.Context, f trajectory.Filter) ([]Edge, error) {
	return collect(ctx, m, f, func(r Rows) []Edge { return r.Edges })
}

func collect[T any](ctx context.Context, m *Memory, f trajectory.Filter, of func(Rows) []T) ([]T, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []T
	for _, k := range m.keys(f) {
		out = append(out, of(m.rows[k])...)
	}
	return out, nil
}

func (r Rows) key() trajectory.Key {
	return trajectory.Key{User: r.Round.User, Session: r.Round.Session, Round: r.Round.Round, Sub: r.Round.Sub}
}

// clone returns rows that share no list with r.
func (r Rows) clone() Rows {
	nodes := make(map[trajectory.Type][]Node, len(r.Nodes))
	for t, list := range r.Nodes {
		nodes[t] = slices.Clone(list)
	}
	r.Nodes, r.Edges = nodes, slices.Clone(r.Edges)
	return r
}
