package trajectory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Relation is what an edge says of its two nodes: a word in small letters,
// digits and underscores, at most 63 long. Beside those named here a caller may
// use any of its own.
type Relation string

// The relations that are inferred, and the one between rounds.
const (
	Triggers      Relation = "triggers"       // Query or State -> Action
	HasConclusion Relation = "has_conclusion" // Query, Action or State -> State
	ContinuesTo   Relation = "continues_to"   // from round to round; made here alone
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

// What an edge can be refused for; what is returned wraps these and names the
// pair.
var (
	// ErrNoRelation: nothing follows from the two types, so a relation must be
	// given.
	ErrNoRelation = errors.New("a relation must be given")
	// ErrRelation: the relation cannot stand between the two types, or is no
	// word.
	ErrRelation = errors.New("the relation does not fit")
)

// InferRelation returns the relation that follows from the types of the two nodes of an
// edge, and whether any does.
func InferRelation(from, to Type) (Relation, bool) {
	switch {
	case to == Action && (from == Query || from == State):
		return Triggers, true
	case to == State && (from == Query || from == Action || from == State):
		return HasConclusion, true
	}
	return "", false
}

// ResolveRelation returns the relation of an edge: r if it is given and fits, else what
// follows from the types.
func ResolveRelation(from, to ID, r Relation) (Relation, error) {
	f, t := from.Type(), to.Type()
	if t == Query {
		return "", fmt.Errorf("%s -> %s: nothing within a round leads to its query: %w", from, to, ErrRelation)
	}
	if r == "" {
		inferred, ok := InferRelation(f, t)
		if !ok {
			return "", fmt.Errorf("%s -> %s: no relation follows from %s -> %s: %w, such as %s",
				from, to, f, t, ErrNoRelation, strings.Join(words(suggest(f, t)), " or "))
		}
		return inferred, nil
	}
	if r == ContinuesTo {
		return "", fmt.Errorf("%s -> %s: %s joins rounds and is never given: %w", from, to, r, ErrRelation)
	}
	if !r.isWord() {
		return "", fmt.Errorf("%s -> %s: %q is not a word of small letters, digits and underscores: %w", from, to, string(r), ErrRelation)
	}
	if want := allowedTargets(r); len(want) > 0 && !slices.Contains(want, t) {
		return "", fmt.Errorf("%s -> %s: %s leads to %s, not to %s: %w", from, to, r, strings.Join(words(want), " or "), t, ErrRelation)
	}
	return r, nil
}

// isWord reports whether the relation is spelt as one.
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

// allowedTargets lists the types that a relation may lead to, nothing where any will
// do.
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

// suggest lists what a caller may have meant.
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
