package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/url"
	"path"
	"strings"

	"github.com/weir-run/weir/trajectory"
)

// MaxDataName is the maximum length of a result of DataName, in bytes.
const MaxDataName = 500

// DataName converts text from outside to a name of data: sanitised, and if it is long
// truncated, with a digest that distinguishes it.
func DataName(s string) string {
	long := ""
	if len(s) > MaxDataName {
		sum := sha256.Sum256([]byte(s))
		s, long = s[:MaxDataName], "… sha256:"+hex.EncodeToString(sum[:])
	}
	return Clean(strings.ToValidUTF8(s, "")) + long
}

// Download describes an HTTP response that may be a file.
type Download struct {
	// URL is the requested URL, with "[secret NAME]" in place of secrets.
	URL string
	// Type and Disposition are the headers Content-Type and Content-Disposition.
	Type, Disposition string
	// Size is the length of the body in bytes, -1 if unknown.
	Size int64
}

// File returns the response as data if it is a file: the server gives it a file name, or it
// has a body whose media type is not text. Its name is that file name, or else its URL
// without parameters that have secrets.
func (d Download) File() (trajectory.Artifact, bool) {
	media, _, err := mime.ParseMediaType(d.Type)
	if err != nil {
		media = ""
	}
	name := fileName(d.Disposition)
	if name == "" && (media == "" || isTextMedia(media) || d.Size == 0) {
		return trajectory.Artifact{}, false
	}
	address := withoutSecrets(d.URL)
	if name == "" {
		name = address
	}
	f := trajectory.Artifact{Type: trajectory.File, Name: DataName(name), Attributes: map[string]any{"url": DataName(address)}}
	if media != "" {
		f.Attributes["mimeType"] = DataName(media)
	}
	if d.Size >= 0 {
		f.Attributes["size"] = d.Size
	}
	return f, f.Name != ""
}

// fileName returns the file name of a Content-Disposition (RFC 6266), without folders.
func fileName(disposition string) string {
	_, params, err := mime.ParseMediaType(disposition)
	if err != nil {
		return ""
	}
	name := path.Base(strings.ReplaceAll(params["filename"], `\`, "/"))
	if strings.Trim(name, "./ ") == "" {
		return ""
	}
	return name
}

// withoutSecrets returns a URL without user, fragment and parameters that have secrets.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	var kept []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		if plain, err := url.QueryUnescape(pair); err == nil && pair != "" && !strings.Contains(plain, "[secret") {
			kept = append(kept, pair)
		}
	}
	u.RawQuery = strings.Join(kept, "&")
	return u.String()
}

// isTextMedia reports whether a media type, without parameters, is text or multipart, which
// is not a file.
func isTextMedia(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml", "application/toml",
		"application/x-ndjson", "application/jsonl", "application/sql", "application/graphql", "application/x-www-form-urlencoded":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") ||
		strings.HasSuffix(media, "+yaml") || strings.HasPrefix(media, "multipart/") || strings.HasPrefix(media, "message/")
}
