package trajectory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Type is what a node of the graph stands for.
type Type string

// The node types. The first three are steps of thought and work, the others
// data that steps found, used or made.
const (
	Query     Type = "Query"     // what a round was asked; at most one a round
	State     Type = "State"     // what was concluded
	Action    Type = "Action"    // an answer of a model that calls tools, a tool call, a node
	Knowledge Type = "Knowledge" // a piece of text that is known
	Tool      Type = "Tool"      // a tool as it is offered
	Table     Type = "Table"     // a table of data
	Column    Type = "Column"    // a column of a table
	File      Type = "File"      // a file
	Script    Type = "Script"    // a program text
	Skill     Type = "Skill"     // a folder of instructions and scripts
)

// Types returns the ten types, steps first.
func Types() []Type {
	return []Type{Query, State, Action, Knowledge, Tool, Table, Column, File, Script, Skill}
}

// IsValid reports whether t is one of the ten.
func (t Type) IsValid() bool { return slices.Contains(Types(), t) }

// IsData reports whether nodes of the type are data, and not steps.
func (t Type) IsData() bool { return t.IsValid() && t != Query && t != State && t != Action }

// ID names a node: its type, and in brackets the type in small letters with a
// number of at least five digits, as "Query(query00000)". Numbers go on from
// round to round, so that an ID is unique among all rounds of one agent in a
// session.
type ID string

// MakeID returns the ID of the node of that type with that number, from 0.
func MakeID(t Type, number int) ID {
	return ID(fmt.Sprintf("%s(%s%05d)", t, strings.ToLower(string(t)), number))
}

// Parse returns the type and the number that the ID is made of.
func (id ID) Parse() (Type, int, error) {
	name, rest, ok := strings.Cut(string(id), "(")
	t := Type(name)
	digits, closed := strings.CutSuffix(rest, ")")
	digits, lower := strings.CutPrefix(digits, strings.ToLower(name))
	n, err := strconv.Atoi(digits)
	if !ok || !closed || !lower || !t.IsValid() || err != nil || n < 0 || MakeID(t, n) != id {
		return "", 0, fmt.Errorf("%q is not the id of a node, as Query(query00000) is", string(id))
	}
	return t, n, nil
}

// Type is the type that the ID names, "" where it is not an ID.
func (id ID) Type() Type {
	t, _, err := id.Parse()
	if err != nil {
		return ""
	}
	return t
}
