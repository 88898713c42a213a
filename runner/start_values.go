package runner

import (
	"crypto/rand"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/internal/excerpt"
	"github.com/weir-run/weir/node"
)

// NewID returns a new run id: 9 digits of the time in milliseconds, so that ids sort by
// age, then 7 random ones.
func NewID() string {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	t := uint64(time.Now().UnixMilli())
	var b [9]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = digits[t&31]
		t >>= 5
	}
	return string(b[:]) + strings.ToLower(rand.Text()[:7])
}

// CheckInputs returns the inputs of a run of the flow: those given, with defaults for the
// others. The error has the code input_invalid.
func CheckInputs(f *flow.Flow, given map[string]any) (engine.Values, error) {
	named := make(engine.Values, 0, len(given))
	for _, k := range slices.Sorted(maps.Keys(given)) {
		named = append(named, engine.Named{Name: k, Value: given[k]})
	}
	out, err := node.CheckInputs(f.Inputs, named)
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeInput, Message: err.Error(), Permanent: true}
	}
	return out, nil
}

// SettingsFor returns the settings of the main context of a flow. A model, "provider/model",
// replaces the flow's unless it is "", with the models that are asked if it fails.
func SettingsFor(f *flow.Flow, model string) convo.Settings {
	s := SettingsOf(f)
	if model == "" {
		return s
	}
	if !isModelOf(f, model) {
		s.Fallback = nil
	}
	s.Provider, s.Model = SplitModel(model)
	return s
}

// isModelOf reports whether a model is the first one of a flow. A caller may have made the path
// of a script absolute.
func isModelOf(f *flow.Flow, model string) bool {
	provider, name := SplitModel(model)
	own, first := SplitModel(f.Context.Model)
	return provider == own && (name == first || path.IsAbs(name) && path.Base(name) == path.Base(first))
}

// maxNameLength is the maximum length of a name (user, thread, id) in bytes.
const maxNameLength = 200

// CheckName checks a name (user, thread or id): it must fit on one line of a listing. The
// name "" is valid. what names it in the error, which has the code input_invalid.
func CheckName(what, name string) error {
	bad := ""
	switch {
	case name == "":
		return nil
	case len(name) > maxNameLength:
		bad = fmt.Sprintf("has more than %d bytes", maxNameLength)
	case strings.ContainsFunc(name, isUnprintable):
		bad = "has characters that cannot be shown, such as line breaks"
	case strings.TrimSpace(name) != name:
		bad = "begins or ends with blanks"
	default:
		return nil
	}
	return &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("the %s %q %s", what, shortenName(name), bad),
		Hint:    "give a name that fits on a line: letters, digits, signs and blanks between them",
	}
}

// isUnprintable reports whether a rune moves the cursor, changes the direction of the
// line, or is not valid.
func isUnprintable(r rune) bool {
	return unicode.IsControl(r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// shortenName cuts a name that is too long for an error message.
func shortenName(name string) string { return excerpt.Chars(name, maxNameLength/4) }

// maxOriginLength is the greatest length of an origin in bytes.
const maxOriginLength = 200

var originKind = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// CheckOrigin checks what is said to have started a run: KIND or KIND:NAME. The kinds
// schedule, file, webhook and session require a name. The error has the code
// input_invalid.
func CheckOrigin(origin string) error {
	kind, name, named := strings.Cut(origin, ":")
	bad := ""
	switch {
	case len(origin) > maxOriginLength:
		bad = fmt.Sprintf("has more than %d bytes", maxOriginLength)
	case !originKind.MatchString(kind):
		bad = "does not begin with a kind in lower case"
	case slices.Contains([]string{"schedule", "file", "webhook", "session"}, kind) && name == "":
		bad = fmt.Sprintf("does not say which %s it was", kind)
	case named && name == "":
		bad = "has nothing after the colon"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		bad = "has characters that cannot be shown"
	default:
		return nil
	}
	return &engine.Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("the origin %q %s", origin, bad),
		Hint:    "give KIND or KIND:NAME: cli, go, chat, schedule:NAME, file:PATH, webhook:NAME",
	}
}
