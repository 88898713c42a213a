package tables

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/weir-run/weir/trajectory"
)

// Memory implements Tables in memory.
type Memory struct {
	mu     sync.RWMutex
	rows   map[trajectory.Key]Rows  // mu
	rounds map[trajectory.Key][]int // mu; rounds of each agent, in order; under the key with round 0
}

// NewMemory returns empty tables.
func NewMemory() *Memory {
	return &Memory{rows: map[trajectory.Key]Rows{}, rounds: map[trajectory.Key][]int{}}
}

// agentKey returns the key of the list of an agent's rounds.
func agentKey(k trajectory.Key) trajectory.Key {
	k.Round = 0
	return k
}

// Replace stores the rows of a round.
func (m *Memory) Replace(ctx context.Context, r Rows) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := r.Key()
	if i, there := slices.BinarySearch(m.rounds[agentKey(k)], k.Round); !there {
		m.rounds[agentKey(k)] = slices.Insert(m.rounds[agentKey(k)], i, k.Round)
	}
	m.rows[k] = r.clone()
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

// Rounds returns the keys that match the filter.
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

// Adjacent returns the neighbours of the key's round for its agent.
func (m *Memory) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	rounds := m.rounds[agentKey(k)]
	i, there := slices.BinarySearch(rounds, k.Round)
	if i > 0 {
		before = rounds[i-1]
	}
	if there {
		i++
	}
	if i < len(rounds) {
		after = rounds[i]
	}
	return before, after, nil
}

// Delete removes the rounds that match the filter.
func (m *Memory) Delete(ctx context.Context, f trajectory.Filter) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return m.DeleteFunc(f.Match), nil
}

// DeleteFunc removes the rounds for which gone returns true, and returns their number.
func (m *Memory) DeleteFunc(gone func(trajectory.Key) bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.rows)
	for a, rounds := range m.rounds {
		rounds = slices.DeleteFunc(rounds, func(n int) bool {
			a.Round = n
			if gone(a) {
				delete(m.rows, a)
				return true
			}
			return false
		})
		if a.Round = 0; len(rounds) == 0 {
			delete(m.rounds, a)
		} else {
			m.rounds[a] = rounds
		}
	}
	return before - len(m.rows)
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

// clone returns rows that share no list with r.
func (r Rows) clone() Rows {
	nodes := make(map[trajectory.Type][]Node, len(r.Nodes))
	for t, list := range r.Nodes {
		nodes[t] = slices.Clone(list)
	}
	r.Nodes, r.Edges = nodes, slices.Clone(r.Edges)
	return r
}
