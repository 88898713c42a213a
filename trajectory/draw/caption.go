package draw

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weir-run/weir/trajectory"
)

// caption is the text of a card.
type caption struct {
	word       string // kind and number: "call 5"
	name       string // may be empty
	by         string // the relation, if it is not obvious
	parts      []part
	empty      bool // an answer without text
	failed     bool
	unfinished bool // it has not ended
	inactive   bool // a step that is not on an active branch
	active     bool // the end of an active branch
}

// part is one text below the head of a card.
type part struct {
	class string // style class in the SVG
	sign  string // prefix
	text  string
	lines int // maximum number of lines
}

// unfinished is the attribute of unfinished work.
const unfinished = "unfinished"

// activity has the active nodes of a graph.
type activity struct {
	current  map[trajectory.ID]bool // pointers of the newest round
	inactive map[trajectory.ID]bool
}

// findActivity finds the active nodes: in each round the pointers and their ancestors.
func findActivity(g *trajectory.Graph) activity {
	m := activity{current: map[trajectory.ID]bool{}, inactive: map[trajectory.ID]bool{}}
	from := make(map[trajectory.ID][]trajectory.ID, len(g.Nodes))
	for _, e := range g.Edges {
		if e.Relationship != trajectory.ContinuesTo {
			from[e.Target] = append(from[e.Target], e.Source)
		}
	}
	on := map[trajectory.ID]bool{}
	pointed := map[int]bool{}
	for i, mark := range g.Rounds {
		todo := append([]trajectory.ID{mark.Initial}, mark.Current...)
		pointed[mark.Round] = len(mark.Current) > 0
		for len(todo) > 0 {
			id := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if !on[id] {
				on[id] = true
				todo = append(todo, from[id]...)
			}
		}
		if i == len(g.Rounds)-1 {
			for _, id := range mark.Current {
				m.current[id] = true
			}
		}
	}
	for _, n := range g.Nodes {
		if pointed[n.Round] && !on[n.ID] && !n.Type.IsData() {
			m.inactive[n.ID] = true
		}
	}
	return m
}

// captionOf returns the text of a node's card; relation is that to its parent, "" for none.
func captionOf(n trajectory.Node, m activity, by trajectory.Relation) caption {
	c := caption{word: wordOf(n), name: plain(n.Name), inactive: m.inactive[n.ID], active: m.current[n.ID]}
	if c.name == text(n, trajectory.AttrKind) {
		c.name = "" // the word "answer" is in the title already
	}
	c.failed, _ = n.Attributes[trajectory.AttrFailed].(bool)
	c.unfinished, _ = n.Attributes[unfinished].(bool)
	if by != "" && !isObvious(n, by) {
		c.by = plain(string(by))
	}
	c.fillParts(n)
	return c
}

// wordOf returns a node's type, or the kind of an Action or a State, with the number of its ID.
func wordOf(n trajectory.Node) string {
	word := string(n.Type)
	if kind := plain(text(n, trajectory.AttrKind)); kind != "" && !n.Type.IsData() {
		word = shorten(kind, 9)
	}
	return word + " " + numberOf(n.ID)
}

func numberOf(id trajectory.ID) string {
	_, number, err := id.Parse()
	if err != nil {
		return plain(string(id))
	}
	return fmt.Sprint(number)
}

// isObvious reports whether the position of a card shows the relation to its parent.
func isObvious(n trajectory.Node, by trajectory.Relation) bool {
	switch by {
	case trajectory.Triggers, trajectory.HasConclusion, trajectory.Generates:
		return true
	case trajectory.ToolOutput, trajectory.HasColumn, trajectory.HasScript:
		return n.Type != trajectory.File && n.Type != trajectory.Skill
	default:
		return false
	}
}

// fillParts sets the parts for the type of node.
func (c *caption) fillParts(n trajectory.Node) {
	add := func(class, sign, s string, lines int) bool {
		s = plain(s)
		if s != "" {
			c.parts = append(c.parts, part{class, sign, s, lines})
		}
		return s != ""
	}
	tells := text(n, trajectory.AttrText)
	switch {
	case n.Type == trajectory.Query || n.Type == trajectory.State:
		if !add("said", "", tells, 3) && !add("said", "", n.Description, 3) {
			add("said", "", summary(n), 2)
		}
	case text(n, trajectory.AttrKind) == trajectory.KindAnswer || text(n, trajectory.AttrKind) == trajectory.KindInput:
		if !add("said", "", tells, 2) {
			c.empty = !add("note", "", text(n, trajectory.AttrReasoning), 2)
		}
	case n.Type == trajectory.Action:
		c.addAction(n, add)
	default:
		if !add("text", "", n.Description, 2) && !add("text", "", tells, 2) {
			add("text", "", summary(n), 1)
		}
	}
	if c.failed {
		for i := range c.parts {
			if c.parts[i].class == "said" || c.parts[i].class == "result" {
				c.parts[i].class = "wrong"
			}
		}
	}
}

// addAction adds the input and the result of an Action.
func (c *caption) addAction(n trajectory.Node, add func(class, sign, s string, lines int) bool) {
	kind, _ := n.Attributes["type"].(string)
	if kind == text(n, trajectory.AttrKind) || kind == c.name {
		kind = ""
	}
	notes := []string{kind}
	if sub, ok := n.Attributes["sub"]; ok {
		notes = append(notes, fmt.Sprintf("sub-agent %v", sub))
	}
	hasNote := add("note", "", strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), ", "), 1)
	arguments, result := text(n, trajectory.AttrArguments), ""
	for _, k := range []string{trajectory.AttrResult, "outputs"} {
		if v, ok := n.Attributes[k]; ok && result == "" {
			result = attributeText(v)
		}
	}
	said := add("text", "", fields(arguments), 1)
	said = add("text", "", text(n, trajectory.AttrText), 1) || said
	said = add("text", "", n.Description, 1) || said
	said = add("result", "\u2192 ", fields(result), 1) || said
	if !said && !hasNote {
		add("text", "", summary(n), 1)
	}
}

// text returns a text attribute, "" if there is none.
func text(n trajectory.Node, name string) string {
	s, _ := n.Attributes[name].(string)
	return s
}

// summary lists the attributes of a node without text.
func summary(n trajectory.Node) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		switch k {
		case unfinished, trajectory.AttrKind, trajectory.AttrPosition, trajectory.AttrMessageID, trajectory.AttrText, trajectory.AttrFailed, trajectory.AttrResultPosition, trajectory.AttrResultID:
		default:
			parts = append(parts, fmt.Sprintf("%s %s", k, attributeText(n.Attributes[k])))
		}
	}
	return strings.Join(parts, ", ")
}

// plain returns text as one line without invisible characters.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200d', r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// maxTooltipText is the maximum length of an attribute in a tooltip if no card shows it; text that a card cuts is
// shown completely.
const maxTooltipText = 1500

// tooltip returns everything about a node.
func tooltip(n trajectory.Node) string {
	lines := []string{string(n.ID)}
	say := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	say("name", n.Name)
	say("description", n.Description)
	shown := []string{trajectory.AttrText, trajectory.AttrArguments, trajectory.AttrReasoning, trajectory.AttrKind}
	for _, k := range shown {
		say(k, text(n, k))
	}
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		switch {
		case slices.Contains(shown, k) && text(n, k) != "":
		case k == trajectory.AttrPosition, k == trajectory.AttrResultPosition:
		default:
			say(k, clipText(attributeText(n.Attributes[k])))
		}
	}
	by := n.By
	say("made by", strings.Join(slices.DeleteFunc([]string{by.Run, by.Path, by.Agent, by.User}, func(s string) bool { return s == "" }), " / "))
	if !n.Created.IsZero() {
		say("created", n.Created.Format(time.RFC3339))
	}
	if n.Version > 1 {
		say("version", fmt.Sprint(n.Version))
	}
	return strings.Join(lines, "\n")
}

func clipText(s string) string {
	r := []rune(s)
	if len(r) <= maxTooltipText {
		return s
	}
	return fmt.Sprintf("%s\u2026 (%d more characters)", string(r[:maxTooltipText]), len(r)-maxTooltipText)
}
