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

// MaxDataName is how many bytes of a name DataName keeps.
const MaxDataName = 500

// DataName makes a text from outside a name of data: cleaned, and where it is long
// cut, and told from others that begin the same by its digest.
func DataName(s string) string {
	long := ""
	if len(s) > MaxDataName {
		sum := sha256.Sum256([]byte(s))
		s, long = s[:MaxDataName], "… sha256:"+hex.EncodeToString(sum[:])
	}
	return Clean(strings.ToValidUTF8(s, "")) + long
}

// Download is what is known of a response of HTTP that may be a file.
type Download struct {
	// URL is what was asked for, with "[secret NAME]" where a secret stood.
	URL string
	// Type and Disposition are the headers Content-Type and Content-Disposition.
	Type, Disposition string
	// Size is how many bytes the body has, -1 where that is not known.
	Size int64
}

// File is the response as a piece of data, where it is a file: the server gives it a
// file name, or it has a body of a media type that is none of text. It is called by
// that file name, else by its URL, which is kept without parameters that hold secrets.
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

// fileName is the file name of a Content-Disposition (RFC 6266), without folders.
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

// withoutSecrets is a URL without user, fragment and parameters that hold secrets.
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

// isTextMedia reports whether a media type, without parameters, is one of texts, or of
// several parts, which are no file.
func isTextMedia(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml", "application/toml",
		"application/x-ndjson", "application/jsonl", "application/sql", "application/graphql", "application/x-www-form-urlencoded":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") ||
		strings.HasSuffix(media, "+yaml") || strings.HasPrefix(media, "multipart/") || strings.HasPrefix(media, "message/")
}
