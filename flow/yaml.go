package flow

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/weir-run/weir/internal/excerpt"
)

// parseYAML parses a file by the YAML 1.2 core schema.
func (l *loader) parseYAML(data []byte) *value {
	if len(data) > MaxYAML {
		l.report(1, 1, CodeTooBig, fmt.Sprintf("the file has %d bytes; a YAML flow has at most %d", len(data), MaxYAML), "")
		return nil
	}
	limits := loaderlimits.New(loaderlimits.DepthValue(2*MaxDepth+8), loaderlimits.AliasNone())
	var docs []yaml.Node
	if err := yaml.Load(data, &docs, yaml.WithAllDocuments(), yaml.WithPlugin(limits)); err != nil {
		l.yamlError(err)
		return nil
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 {
		l.report(1, 1, CodeMissingKey, "the file is empty; expected the keys weir, name and nodes", "")
		return nil
	}
	if len(docs) > 1 {
		d := docs[1]
		l.report(d.Line, d.Column, CodeUnsupportedSyntax, "a second YAML document; a file must have one flow", "")
	}
	r := yamlReader{l: l, open: map[*yaml.Node]bool{}}
	v := r.read(docs[0].Content[0], 1)
	if r.failed {
		return nil
	}
	return v
}

// yamlError reports an error of the YAML parser.
func (l *loader) yamlError(err error) {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		l.report(1, 1, CodeSyntax, "not YAML: "+err.Error(), "")
		return
	}
	line, col := e.Mark.Line, e.Mark.Column
	if line == 0 {
		line, col = e.ContextMark.Line, e.ContextMark.Column
	}
	if e.Stage == yaml.ReaderStage && line == 0 {
		l.src.offset(1, 1)
		line, col = l.src.lineColumn(min(e.Mark.Index, len(l.src.data)))
	}
	msg := e.Message
	if e.ContextMsg != "" && e.ContextMark.Line > 0 {
		msg += fmt.Sprintf(", %s that starts at line %d", e.ContextMsg, e.ContextMark.Line)
	}
	code := CodeSyntax
	if strings.Contains(msg, "depth") {
		code = CodeTooBig
	}
	hint := ""
	if at := l.src.offset(max(line, 1), 1); at >= 0 && at < len(l.src.data) && l.src.data[at] == '\t' {
		hint = "YAML is indented with spaces, not with tabs"
	}
	l.report(max(line, 1), max(col, 1), code, "not YAML: "+msg, hint)
}

// yamlReader converts YAML nodes to values.
type yamlReader struct {
	l       *loader
	open    map[*yaml.Node]bool // anchors being expanded, to refuse cycles
	aliased int                 // values repeated so far
	inAlias int
	failed  bool
}

func (r *yamlReader) fail(n *yaml.Node, code, msg, hint string) {
	r.l.report(n.Line, n.Column, code, msg, hint)
}

func (r *yamlReader) read(n *yaml.Node, depth int) *value {
	v := &value{line: int32(n.Line), col: int32(n.Column)}
	if r.failed {
		return v
	}
	if depth > MaxDepth {
		r.fail(n, CodeTooBig, fmt.Sprintf("lists and objects nest deeper than %d", MaxDepth), "")
		r.failed = true
		return v
	}
	if r.inAlias > 0 {
		if r.aliased++; r.aliased > MaxAliased {
			r.fail(n, CodeTooBig, fmt.Sprintf("aliases repeat more than %d values", MaxAliased), "")
			r.failed = true
			return v
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.alias(n, depth)
	case yaml.MappingNode:
		r.tag(n, "!!map")
		r.mapping(n, v, depth)
	case yaml.SequenceNode:
		r.tag(n, "!!seq")
		v.kind = kindList
		for _, c := range n.Content {
			v.items = append(v.items, r.read(c, depth+1))
		}
	default:
		r.scalar(n, v)
	}
	return v
}

// alias expands an alias; positions in the value are those of the anchor.
func (r *yamlReader) alias(n *yaml.Node, depth int) *value {
	if n.Alias == nil || r.open[n.Alias] {
		r.fail(n, CodeUnsupportedSyntax, fmt.Sprintf("the alias *%s is inside its own anchor", n.Value), "")
		return &value{line: int32(n.Line), col: int32(n.Column)}
	}
	r.open[n.Alias] = true
	r.inAlias++
	v := r.read(n.Alias, depth)
	r.inAlias--
	delete(r.open, n.Alias)
	return v
}

func (r *yamlReader) mapping(n *yaml.Node, v *value, depth int) {
	v.kind = kindObject
	v.members = make([]member, 0, len(n.Content)/2)
	var seen map[string]int32
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind == yaml.AliasNode && k.Alias != nil {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			r.fail(n.Content[i], CodeUnsupportedSyntax, "a key is a list or an object; keys must be text", "")
			continue
		}
		if k.Value == "<<" && k.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 {
			r.fail(k, CodeUnsupportedSyntax, "merge keys (<<) are not part of YAML 1.2 and are not supported", "write the keys out, or use an alias for a whole value")
			continue
		}
		if seen == nil && len(n.Content) > 16 {
			seen = make(map[string]int32, len(n.Content)/2)
			for _, m := range v.members {
				seen[m.key] = m.line
			}
		}
		if first, dup := findDuplicateKey(v, seen, k.Value); dup {
			r.fail(n.Content[i], CodeDuplicateKey, fmt.Sprintf("the key %s occurs twice; first at line %d", quote(k.Value), first), "")
			continue
		}
		if seen != nil {
			seen[k.Value] = int32(k.Line)
		}
		m := member{key: k.Value, line: int32(n.Content[i].Line), col: int32(n.Content[i].Column)}
		m.val = r.read(n.Content[i+1], depth+1)
		v.members = append(v.members, m)
	}
}

// findDuplicateKey finds a key that the object already has.
func findDuplicateKey(v *value, seen map[string]int32, key string) (int32, bool) {
	if seen != nil {
		line, ok := seen[key]
		return line, ok
	}
	for i := range v.members {
		if v.members[i].key == key {
			return v.members[i].line, true
		}
	}
	return 0, false
}

// tag refuses an explicit tag other than the implicit one.
func (r *yamlReader) tag(n *yaml.Node, want string) {
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != want {
		r.fail(n, CodeUnsupportedSyntax, fmt.Sprintf("the tag %s is not supported; flow files have plain data", n.Tag), "")
	}
}

func (r *yamlReader) scalar(n *yaml.Node, v *value) {
	v.text = n.Value
	v.quoted = n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if n.Style&yaml.TaggedStyle != 0 {
		if n.ShortTag() != "!!str" {
			r.tag(n, "!!str")
		}
		v.kind, v.quoted = kindText, true
		return
	}
	if v.quoted {
		v.kind = kindText
		return
	}
	var ok bool
	if v.scalar, v.kind, ok = coreScalar(n.Value); !ok {
		r.fail(n, CodeTooBig, fmt.Sprintf("the number %s does not fit 64 bits", excerpt.Bytes(n.Value, maxQuoted)), "quote it to use it as text")
		v.kind, v.scalar = kindFloat, 0.0
	}
}

// coreScalar resolves a plain scalar by the YAML 1.2 core schema, chapter 10.3.2
// of the specification. The last result is false for a number out of range.
func coreScalar(s string) (any, kind, bool) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil, kindNull, true
	case "true", "True", "TRUE":
		return true, kindBool, true
	case "false", "False", "FALSE":
		return false, kindBool, true
	}
	if c := s[0]; c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') {
		return nil, kindText, true
	}
	switch {
	case strings.HasPrefix(s, "0o") && digits(s[2:], "01234567"):
		i, err := strconv.ParseInt(s[2:], 8, 64)
		return i, kindInt, err == nil
	case strings.HasPrefix(s, "0x") && digits(s[2:], "0123456789abcdefABCDEF"):
		i, err := strconv.ParseInt(s[2:], 16, 64)
		return i, kindInt, err == nil
	case digits(strings.TrimLeft(s[:1], "+-")+s[1:], "0123456789"):
		i, err := strconv.ParseInt(s, 10, 64)
		return i, kindInt, err == nil
	case coreFloat().MatchString(s):
		f, err := strconv.ParseFloat(s, 64)
		return f, kindFloat, err == nil && !math.IsInf(f, 0)
	case coreNotNumber().MatchString(s):
		return nil, kindFloat, false
	}
	return nil, kindText, true
}

// Patterns of the core schema. They are compiled on first use, so that a process that reads no
// YAML does not pay for them.
//
//nolint:gochecknoglobals // compiled patterns
var (
	coreFloat = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	})
	coreNotNumber = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN)$`)
	})
)

func digits(s, of string) bool { return s != "" && strings.Trim(s, of) == "" }

// maxQuoted is the maximum length of a quoted text in a message, in bytes.
const maxQuoted = 60

// quote quotes a name for a message.
func quote(s string) string { return strconv.Quote(excerpt.Bytes(s, maxQuoted)) }
