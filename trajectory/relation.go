package trajectory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Relation is the relation of two nodes: lower-case letters, digits and underscores, at most 63. Callers may use
// others than those named here.
type Relation string

// The inferred relations, and the one between rounds.
const (
	Triggers      Relation = "triggers"       // Query or State -> Action
	HasConclusion Relation = "has_conclusion" // Query, Action or State -> State
	ContinuesTo   Relation = "continues_to"   // from round to round; only made by this package
)

// The relations that must be given.
const (
	Produces              Relation = "produces"
	Generates             Relation = "generates"
	ToolOutput            Relation = "tool_output"
	HasScript             Relation = "has_script"
	HasColumn             Relation = "has_column"
	RefersTo              Relation = "refers_to"
	HasAdditionalFile     Relation = "has_additional_file"
	HasAdditionalTable    Relation = "has_additional_table"
	FindRelevantData      Relation = "find_relevant_data"
	FindRelevantKnowledge Relation = "find_relevant_knowledge"
	FindRelevantTool      Relation = "find_relevant_tool"
)

// The reasons why an edge is refused. Returned errors wrap these and name the two nodes.
var (
	// ErrNoRelation: no relation can be inferred from the two types, so one must be given.
	ErrNoRelation = errors.New("a relation must be given")
	// ErrRelation: the relation is not allowed between the two types, or is not a valid name.
	ErrRelation = errors.New("the relation is not allowed")
)

// InferRelation returns the inferred relation for the types of two nodes, and whether there is one.
func InferRelation(from, to Type) (Relation, bool) {
	switch {
	case to == Action && (from == Query || from == State):
		return Triggers, true
	case to == State && (from == Query || from == Action || from == State):
		return HasConclusion, true
	}
	return "", false
}

// ResolveRelation returns the relation of an edge: r if it is given and allowed, otherwise the inferred one.
func ResolveRelation(from, to ID, r Relation) (Relation, error) {
	f, t := from.Type(), to.Type()
	if t == Query {
		return "", fmt.Errorf("%s -> %s: no edge within a round may lead to its query: %w", from, to, ErrRelation)
	}
	if r == "" {
		inferred, ok := InferRelation(f, t)
		if !ok {
			return "", fmt.Errorf("%s -> %s: no relation can be inferred for %s -> %s: %w, such as %s",
				from, to, f, t, ErrNoRelation, strings.Join(words(suggest(f, t)), " or "))
		}
		return inferred, nil
	}
	if r == ContinuesTo {
		return "", fmt.Errorf("%s -> %s: %s joins rounds and cannot be given: %w", from, to, r, ErrRelation)
	}
	if !r.isWord() {
		return "", fmt.Errorf("%s -> %s: %q may only contain lower-case letters, digits and underscores: %w", from, to, string(r), ErrRelation)
	}
	if want := allowedTargets(r); len(want) > 0 && !slices.Contains(want, t) {
		return "", fmt.Errorf("%s -> %s: %s leads to %s, not to %s: %w", from, to, r, strings.Join(words(want), " or "), t, ErrRelation)
	}
	return r, nil
}

// isWord reports whether the relation is a valid name.
func (r Relation) isWord() bool {
	if r == "" || len(r) > 63 || r[0] < 'a' || r[0] > 'z' {
		return false
	}
	for _, c := range r {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// allowedTargets lists the types to which a relation may lead, nil for all.
func allowedTargets(r Relation) []Type {
	switch r {
	case Triggers:
		return []Type{Action}
	case HasConclusion:
		return []Type{State}
	case HasScript:
		return []Type{Script}
	case HasColumn:
		return []Type{Column}
	case HasAdditionalFile:
		return []Type{File}
	case HasAdditionalTable:
		return []Type{Table}
	case FindRelevantData:
		return []Type{Table, Column, File, Script, Knowledge}
	case FindRelevantKnowledge:
		return []Type{Knowledge}
	case FindRelevantTool:
		return []Type{Tool, Skill}
	default:
		return nil
	}
}

// suggest lists the relations that are allowed between two types.
func suggest(from, to Type) []Relation {
	switch {
	case from == Table && to == Column:
		return []Relation{HasColumn}
	case to == Script:
		return []Relation{HasScript, Generates}
	case to == Tool, to == Skill:
		return []Relation{FindRelevantTool, RefersTo}
	case to == Knowledge:
		return []Relation{FindRelevantKnowledge, ToolOutput}
	case to == Action:
		return []Relation{Triggers, Generates}
	case to == State:
		return []Relation{HasConclusion}
	}
	return []Relation{Produces, ToolOutput, RefersTo}
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}
