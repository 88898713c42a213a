package trajectory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Type is the type of a node.
type Type string

// The node types. The first three are steps of work, the others data that steps found, used or made.
const (
	Query     Type = "Query"     // the input of a round; at most one a round
	State     Type = "State"     // a conclusion
	Action    Type = "Action"    // a model's answer with tool calls, a tool call, a node of the flow
	Knowledge Type = "Knowledge" // a known text
	Tool      Type = "Tool"      // a tool that was offered
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

// IsData reports whether nodes of the type are data, as opposed to steps.
func (t Type) IsData() bool { return t.IsValid() && t != Query && t != State && t != Action }

// ID identifies a node: its type, and in brackets the type in lower case with a number of at least five digits, as
// "Query(query00000)". Numbers continue from round to round, so that an ID is unique among all rounds of one agent in
// a session.
type ID string

// MakeID returns the ID of the node of that type with that number, from 0.
func MakeID(t Type, number int) ID {
	return ID(fmt.Sprintf("%s(%s%05d)", t, strings.ToLower(string(t)), number))
}

// Parse returns the type and the number in the ID.
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

// Type returns the type in the ID, "" if it is invalid.
func (id ID) Type() Type {
	t, _, err := id.Parse()
	if err != nil {
		return ""
	}
	return t
}
