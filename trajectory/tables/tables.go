// Package tables stores trajectories as rows: one table per type of node, one for
// edges and one for rounds. It defines the rows and converts rounds to rows and back;
// a database implements [Tables]. [Memory] is an implementation without a database.
//
// It must not know SQL.
package tables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/trajectory"
)

// The tables besides those of node types.
const (
	EdgeTable  = "trajectory_edge"
	RoundTable = "trajectory_round"
)

// NodeTable returns the name of the table for nodes of a type.
func NodeTable(t trajectory.Type) string { return "trajectory_" + strings.ToLower(string(t)) }

// Node is a row of the table of its type. Its primary key is the round's key with ID.
type Node struct {
	User, Session string
	Round, Sub    int
	ID            string
	// Seq is the node's position among all nodes of the round, from 0.
	Seq               int
	Name, Description string
	Attributes        string // a JSON object
	// Run, Path, Agent and Author are the attribution.
	Run, Path, Agent, Author string
	Created                  time.Time
	Version                  int
	History                  string // a JSON object: {version: {at, by, old, added}}
}

// Edge is a row of the table of edges. Its primary key is the round's key with
// Source and Target.
type Edge struct {
	Source, Target, Relationship string
	User, Session                string
	Round, Sub                   int
	Seq                          int // the edge's position in the round, from 0
}

// Round is a row of the table of rounds, whose primary key is the round's key.
type Round struct {
	User, Session string
	Round, Sub    int
	Agent         string // the path of the sub-agent in the flow
	InitialPt     string
	CurrentPt     string // a JSON list of ids
	First         string // a JSON object: {type: number}
	Messages      string // a JSON list
}

// Rows are all rows of one round.
type Rows struct {
	Round Round
	Nodes map[trajectory.Type][]Node
	Edges []Edge
}

// Key returns the key of the rows' round.
func (r Rows) Key() trajectory.Key {
	return trajectory.Key{User: r.Round.User, Session: r.Round.Session, Round: r.Round.Round, Sub: r.Round.Sub}
}

// Tables stores the rows. The tables are created on first use. It is safe for concurrent use.
type Tables interface {
	// Replace replaces the rows of a round, in one transaction.
	Replace(ctx context.Context, r Rows) error
	// Rows returns the rows of a round, or trajectory.ErrNotFound. Nodes and
	// edges are in the order of Seq.
	Rows(ctx context.Context, k trajectory.Key) (Rows, error)
	// Rounds returns the keys that match the filter, ordered by user, session, sub-agent and round.
	Rounds(ctx context.Context, f trajectory.Filter) ([]trajectory.Key, error)
	// Nodes returns the rows of one type whose round matches the filter, in the order of Rounds and then of Seq.
	Nodes(ctx context.Context, t trajectory.Type, f trajectory.Filter) ([]Node, error)
	// Edges returns the edges whose round matches the filter, in the same order.
	Edges(ctx context.Context, f trajectory.Filter) ([]Edge, error)
	// Adjacent returns the neighbours of the key's round for its agent, 0 for none.
	Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error)
	// Delete permanently removes the rows of the rounds that match the filter, and returns the number of rounds.
	Delete(ctx context.Context, f trajectory.Filter) (int, error)
}

// Provider is implemented by stores that have such tables.
type Provider interface {
	// Trajectories returns the store's tables, which are closed with the store.
	Trajectories() Tables
}

// Storage implements trajectory.Storage with tables.
type Storage struct{ tables Tables }

// New returns a storage for the tables.
func New(t Tables) *Storage { return &Storage{t} }

// Save replaces a stored round.
func (s *Storage) Save(ctx context.Context, r trajectory.Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("save trajectory rows: %w", err)
	}
	rows, err := RowsOf(r)
	if err != nil {
		return err
	}
	if err := s.tables.Replace(ctx, rows); err != nil {
		return fmt.Errorf("save trajectory rows: %w", err)
	}
	return nil
}

// Load returns a round, or trajectory.ErrNotFound.
func (s *Storage) Load(ctx context.Context, k trajectory.Key) (trajectory.Record, error) {
	if err := k.Check(); err != nil {
		return trajectory.Record{}, fmt.Errorf("load trajectory rows: %w", err)
	}
	rows, err := s.tables.Rows(ctx, k)
	if err != nil {
		return trajectory.Record{}, fmt.Errorf("load trajectory rows: %w", err)
	}
	return RecordOf(rows)
}

// List returns the keys that match the filter.
func (s *Storage) List(ctx context.Context, f trajectory.Filter) ([]trajectory.Key, error) {
	keys, err := s.tables.Rounds(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list trajectory rows: %w", err)
	}
	return keys, nil
}

// Adjacent returns the neighbours of the key's round.
func (s *Storage) Adjacent(ctx context.Context, k trajectory.Key) (before, after int, err error) {
	if err := k.Check(); err != nil {
		return 0, 0, fmt.Errorf("find adjacent trajectory rows: %w", err)
	}
	before, after, err = s.tables.Adjacent(ctx, k)
	if err != nil {
		return 0, 0, fmt.Errorf("find adjacent trajectory rows: %w", err)
	}
	return before, after, nil
}

// Delete deletes the rows of the rounds that match the filter.
func (s *Storage) Delete(ctx context.Context, f trajectory.Filter) (int, error) {
	n, err := s.tables.Delete(ctx, f)
	if err != nil {
		return n, fmt.Errorf("delete trajectory rows: %w", err)
	}
	return n, nil
}

// RowsOf converts a round to rows.
func RowsOf(r trajectory.Record) (Rows, error) {
	r = r.Clone()
	text := &jsonTexts{}
	out := Rows{
		Round: Round{
			User: r.User, Session: r.Session, Round: r.Round, Sub: r.Sub, Agent: r.Agent,
			InitialPt: string(r.Initial), CurrentPt: text.encode(r.Current), First: text.encode(r.First), Messages: text.encode(r.Messages),
		},
		Nodes: map[trajectory.Type][]Node{},
		Edges: make([]Edge, len(r.Edges)),
	}
	for i, n := range r.Nodes {
		if y := n.Created.UTC().Year(); y < 0 || y > 9999 {
			return Rows{}, fmt.Errorf("%s %w: %s was created in the year %d", r.Key, trajectory.ErrRecord, n.ID, y)
		}
		out.Nodes[n.Type] = append(out.Nodes[n.Type], Node{
			User: r.User, Session: r.Session, Round: r.Round, Sub: r.Sub, ID: string(n.ID), Seq: i,
			Name: n.Name, Description: n.Description, Attributes: text.encode(n.Attributes),
			Run: n.By.Run, Path: n.By.Path, Agent: n.By.Agent, Author: n.By.User,
			Created: n.Created, Version: n.Version, History: text.encode(n.History),
		})
	}
	for i, e := range r.Edges {
		out.Edges[i] = Edge{
			Source: string(e.Source), Target: string(e.Target), Relationship: string(e.Relationship),
			User: r.User, Session: r.Session, Round: r.Round, Sub: r.Sub, Seq: i,
		}
	}
	if text.err != nil {
		return Rows{}, fmt.Errorf("write the rows of %s: %w", r.Key, text.err)
	}
	return out, nil
}

// jsonTexts encodes JSON and keeps the first error.
type jsonTexts struct{ err error }

func (t *jsonTexts) encode(v any) string {
	b, err := json.Marshal(v)
	t.err = errors.Join(t.err, err)
	return string(b)
}

func (t *jsonTexts) decode(text string, v any) {
	t.err = errors.Join(t.err, json.Unmarshal([]byte(text), v))
}

// RecordOf converts rows to a round, and checks it.
func RecordOf(rows Rows) (trajectory.Record, error) {
	text := &jsonTexts{}
	r := trajectory.Record{
		Key: rows.Key(), Agent: rows.Round.Agent, Initial: trajectory.ID(rows.Round.InitialPt),
	}
	text.decode(rows.Round.CurrentPt, &r.Current)
	text.decode(rows.Round.First, &r.First)
	text.decode(rows.Round.Messages, &r.Messages)
	var nodes []typedNode
	for t, list := range rows.Nodes {
		for _, n := range list {
			nodes = append(nodes, typedNode{t, n})
		}
	}
	slices.SortFunc(nodes, func(a, b typedNode) int { return a.Seq - b.Seq })
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, text.node(n))
	}
	edges := slices.Clone(rows.Edges)
	slices.SortFunc(edges, func(a, b Edge) int { return a.Seq - b.Seq })
	for _, e := range edges {
		r.Edges = append(r.Edges, trajectory.Edge{
			Source: trajectory.ID(e.Source), Target: trajectory.ID(e.Target), Relationship: trajectory.Relation(e.Relationship),
		})
	}
	if err := text.err; err != nil {
		return trajectory.Record{}, fmt.Errorf("read the rows of %s: %w", r.Key, err)
	}
	if err := r.Check(); err != nil {
		return trajectory.Record{}, err
	}
	return r.Clone(), nil
}

// typedNode is a row with its type.
type typedNode struct {
	of trajectory.Type
	Node
}

func (t *jsonTexts) node(n typedNode) trajectory.Node {
	out := trajectory.Node{
		ID: trajectory.ID(n.ID), Type: n.of, Round: n.Round, Sub: n.Sub, Name: n.Name, Description: n.Description,
		By:      trajectory.Attribution{Run: n.Run, Path: n.Path, Agent: n.Agent, User: n.Author},
		Created: n.Created.UTC(), Version: n.Version,
	}
	t.decode(n.Attributes, &out.Attributes)
	t.decode(n.History, &out.History)
	return out
}
