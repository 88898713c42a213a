package weir

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
)

// maxOrigin is how many bytes an origin may have.
const maxOrigin = 200

// originKind is what an origin begins with.
var originKind = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// checkOrigin holds what is said to have started a run to the form of origins: a
// kind, and for triggers a colon and which one it was.
func checkOrigin(origin string) error {
	kind, name, named := strings.Cut(origin, ":")
	bad := ""
	switch {
	case len(origin) > maxOrigin:
		bad = fmt.Sprintf("has more than %d bytes", maxOrigin)
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
	return &Error{
		Code: engine.CodeInput, Permanent: true,
		Message: fmt.Sprintf("the origin %q %s", origin, bad),
		Hint:    "give KIND or KIND:NAME: cli, go, chat, schedule:NAME, file:PATH, webhook:NAME",
	}
}
