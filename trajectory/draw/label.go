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

// caption is what stands in a node's box: what it is, and what it says.
type caption struct {
	kind   string // the type, and for an Action its kind
	number string // the ID's number
	name   string // may be empty
	text   string // may be empty
	failed bool
}

func captionOf(n trajectory.Node) caption {
	c := caption{kind: string(n.Type), name: plain(n.Name)}
	if _, number, err := n.ID.Parse(); err == nil {
		c.number = fmt.Sprint(number)
	}
	if kind := text(n, trajectory.Kind); kind != "" {
		c.kind += " \u00b7 " + kind
	}
	if c.name == text(n, trajectory.Kind) {
		c.name = "" // "answer" is said already
	}
	c.failed, _ = n.Attributes[trajectory.Failed].(bool)
	for _, s := range []string{
		text(n, trajectory.Text), text(n, trajectory.Arguments), n.Description, text(n, trajectory.Reasoning), summary(n),
	} {
		if c.text = plain(s); c.text != "" {
			break
		}
	}
	return c
}

// text is an attribute that is text, "" where there is none.
func text(n trajectory.Node, name string) string {
	s, _ := n.Attributes[name].(string)
	return s
}

// summary lists the attributes of a node that says nothing else.
func summary(n trajectory.Node) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		switch k {
		case trajectory.Kind, trajectory.Position, trajectory.MessageID, trajectory.Text:
		default:
			parts = append(parts, fmt.Sprintf("%s %v", k, n.Attributes[k]))
		}
	}
	return strings.Join(parts, ", ")
}

// plain is text on one line, without what is not seen.
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

// most is how many characters of an attribute that is not shown stand in a
// tooltip; what a box cuts off stands there whole.
const most = 1500

// tooltip is all there is to say of a node.
func tooltip(n trajectory.Node) string {
	lines := []string{string(n.ID)}
	say := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	say("name", n.Name)
	say("description", n.Description)
	shown := []string{trajectory.Text, trajectory.Arguments, trajectory.Reasoning, trajectory.Kind}
	for _, k := range shown {
		say(k, text(n, k))
	}
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		switch {
		case slices.Contains(shown, k) && text(n, k) != "":
		case k == trajectory.Position, k == trajectory.ResultPosition:
		default:
			say(k, clip(fmt.Sprint(n.Attributes[k])))
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

func clip(s string) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return fmt.Sprintf("%s\u2026 (%d more characters)", string(r[:most]), len(r)-most)
}

// width is about how wide text is in a sans-serif font, in parts of its size.
func width(s string) float64 {
	w := 0.0
	for _, r := range s {
		w += advance(r)
	}
	return w
}

// advance is generous: a box may have room left, and must not overflow where a
// reader's font is a little wider.
func advance(r rune) float64 {
	switch {
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r), unicode.Is(unicode.Cf, r):
		return 0
	case strings.ContainsRune("iljtf.,:;'|!I[]()`", r):
		return 0.34
	case strings.ContainsRune("mwMW@%\u2026", r):
		return 0.95
	case r >= '0' && r <= '9', r == '_':
		return 0.62
	case unicode.IsUpper(r):
		return 0.72
	case r == ' ':
		return 0.32
	case r >= 0x1100 && !unicode.Is(unicode.Latin, r) && r > 0x2e7f:
		return 1.15
	}
	return 0.6
}

// fit cuts text to a width in parts of the font size, and says what is left
// over, "" where all of it fits. At a break between words where there is one.
func fit(s string, room float64) (line, rest string) {
	if width(s) <= room {
		return s, ""
	}
	w, space, last := 0.0, 0, 0
	for i, r := range s {
		if r == ' ' {
			space = i
		}
		if w += advance(r); w > room {
			last = i
			break
		}
	}
	if space > last/2 {
		return s[:space], strings.TrimSpace(s[space:])
	}
	return s[:last], s[last:]
}

// shorten cuts text to a width, with an ellipsis.
func shorten(s string, room float64) string {
	line, rest := fit(s, room)
	if rest == "" {
		return line
	}
	w := advance('\u2026')
	for i, r := range s {
		if w += advance(r); w > room {
			return strings.TrimRight(s[:i], " ") + "\u2026"
		}
	}
	return s
}
