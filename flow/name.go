package flow

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-run/weir/flow/expr"
)

// portNameRule says what IsPortName accepts, for messages.
const portNameRule = "expected a text of 1 to 128 characters without control characters"

// IsPortName reports whether a text can name an input, an output, a port or a branch: valid UTF-8
// of 1 to MaxPortName characters, none of which is a control character. In expressions a name that
// is no identifier is quoted: inputs["my name"].
func IsPortName(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= MaxPortName && !strings.ContainsFunc(s, unicode.IsControl)
}

// portName checks a key that names an input, an output, a port or a branch.
func (l *loader) portName(m *member, what string) bool {
	if !IsPortName(m.key) {
		l.reportAtKey(m, CodeBadID, fmt.Sprintf("%s is not a valid name for %s: %s", quote(m.key), what, portNameRule), "")
		return false
	}
	return true
}

// BodyInput returns NAME of a bound value that is exactly {{ inputs.NAME }} or
// {{ inputs["NAME"] }}, "" for any other.
func BodyInput(v any) string {
	text, _ := v.(string)
	s, open := strings.CutPrefix(strings.TrimSpace(text), "{{")
	s, closed := strings.CutSuffix(s, "}}")
	if !open || !closed {
		return ""
	}
	if path := expr.Path(s); len(path) == 2 && path[0] == "inputs" {
		return path[1]
	}
	return ""
}

// maxID is the maximum length of a node's id.
const maxID = 64

// identifier checks a node's id.
func (l *loader) identifier(m *member, what string) bool {
	if !isIdentifier(m.key) {
		l.reportAtKey(m, CodeBadID, fmt.Sprintf("%s is not a valid name for %s: letters, digits and _, not a digit first, at most %d", quote(m.key), what, maxID), "")
		return false
	}
	return true
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return s != "" && len(s) <= maxID
}

// nodeID checks a node's id.
func (l *loader) nodeID(m *member) bool {
	if !l.identifier(m, "a node") {
		return false
	}
	switch m.key {
	case "run", "state", "inputs", "secrets", "context":
		l.reportAtKey(m, CodeReservedID, fmt.Sprintf("%s has another meaning in expressions", m.key), "choose another id, for example "+m.key+"_node")
		return false
	}
	if expr.Reserved(m.key) {
		l.reportAtKey(m, CodeReservedID, fmt.Sprintf("%s is a keyword of the expression language", m.key), "choose another id, for example "+m.key+"_node")
		return false
	}
	return true
}

// portNameSchema is the JSON Schema of what IsPortName accepts.
func portNameSchema() obj {
	return obj{"type": "string", "minLength": 1, "maxLength": MaxPortName, "pattern": `^[^\x00-\x1f\x7f-\x9f]*$`}
}
