package httptool

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/weir-run/weir/tool/template"
)

// urlTemplate is the template of a URL.
type urlTemplate struct {
	text   template.Template
	prefix string // scheme and host, nothing after them
}

// parseURLTemplate parses the template of a URL; scheme and host are literal.
func parseURLTemplate(s string) (urlTemplate, error) {
	text, err := template.Parse(s)
	if err != nil {
		return urlTemplate{}, err
	}
	if len(text) == 0 || text[0].Kind != template.Literal {
		return urlTemplate{}, errors.New("it must begin with http:// or https:// and a host")
	}
	if text.HasKind(template.Secret) {
		return urlTemplate{}, errors.New("a secret must be in a header or the query, not in the URL")
	}
	u, err := url.Parse(text[0].Text)
	if err != nil {
		return urlTemplate{}, err
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return urlTemplate{}, fmt.Errorf("%q does not begin with http:// or https:// and a host", text[0].Text)
	case u.User != nil:
		return urlTemplate{}, errors.New("a user name or password cannot stand in it; send an authorization header made of secrets")
	case len(text) > 1 && u.Path == "" && u.RawQuery == "" && !u.ForceQuery:
		return urlTemplate{}, errors.New("the host cannot hold a reference")
	case strings.Contains(s, "#"):
		return urlTemplate{}, errors.New("a fragment is not sent")
	}
	return urlTemplate{text: text, prefix: u.Scheme + "://" + u.Host}, nil
}

// expand builds the URL with every value escaped for its place.
func (t urlTemplate) expand(args map[string]any) (*url.URL, error) {
	var b strings.Builder
	inQuery := false
	for _, p := range t.text {
		if p.Kind == template.Literal {
			inQuery = inQuery || strings.Contains(p.Text, "?")
			b.WriteString(p.Text)
			continue
		}
		v, _ := p.Value(args)
		s := template.FormatValue(v)
		if inQuery {
			b.WriteString(url.QueryEscape(s))
			continue
		}
		if err := checkSegment(s); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(p.Path, "."), err)
		}
		b.WriteString(url.PathEscape(s))
	}
	u, err := url.Parse(b.String())
	if err != nil {
		return nil, fmt.Errorf("the arguments do not make a URL: %w", err)
	}
	if u.Scheme+"://"+u.Host != t.prefix || u.User != nil {
		return nil, errors.New("the arguments would lead to another host")
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if segment == "." || segment == ".." {
			return nil, errors.New("the arguments would lead to another path")
		}
	}
	return u, nil
}

// checkSegment refuses values that would change the path: an empty one, or a parent folder,
// also one that a server would see only after unescaping the slashes.
func checkSegment(s string) error {
	if s == "" {
		return errors.New("it is part of the address and cannot be empty")
	}
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." || part == "." {
			return fmt.Errorf("it is part of the address and cannot hold %q", part)
		}
	}
	return nil
}
