package anthropic

import (
	"encoding/base64"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/convo"
)

const pdf = "application/pdf"

// parts returns a message's images and files as content blocks.
func (p *Provider) parts(parts []convo.Part, of int) ([]block, error) {
	var out []block
	for _, part := range parts {
		b := block{messageIndex: of, fields: blockFields{Type: part.Kind}}
		var err error
		switch {
		case part.URL == "" && len(part.Data) == 0:
			return nil, p.errors.InvalidRequest("the part %q has neither data nor an address", part.Name)
		case part.Kind == "image":
			b.encoded, err = p.image(part)
		case part.Kind == "file":
			b.encoded, err = p.document(part)
		default:
			return nil, p.errors.InvalidRequest("a part has the unknown kind %q", part.Kind)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func (p *Provider) image(part convo.Part) (contentBlock, error) {
	if len(part.Data) == 0 {
		return contentBlock{Type: "image", Source: &blockSource{Type: "url", URL: part.URL}}, nil
	}
	kind := kindOf(part)
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, kind) {
		return contentBlock{}, p.errors.InvalidRequest("an image has the type %q; supported are JPEG, PNG, GIF and WebP", kind)
	}
	return contentBlock{Type: "image", Source: &blockSource{
		Type: "base64", MediaType: kind, Data: base64.StdEncoding.EncodeToString(part.Data),
	}}, nil
}

// document returns a block for a file: a PDF, by its data or address, or any text.
func (p *Provider) document(part convo.Part) (contentBlock, error) {
	kind := kindOf(part)
	d := contentBlock{Type: "document", Title: part.Name}
	switch {
	case len(part.Data) == 0 && (kind == "" || kind == pdf):
		d.Source = &blockSource{Type: "url", URL: part.URL}
	case len(part.Data) == 0:
		return d, p.errors.InvalidRequest("a file of the type %q must be sent as data; only a PDF can be sent by its address", kind)
	case kind == pdf:
		d.Source = &blockSource{Type: "base64", MediaType: pdf, Data: base64.StdEncoding.EncodeToString(part.Data)}
	case utf8.Valid(part.Data) && !isBlank(string(part.Data)):
		d.Source = &blockSource{Type: "text", MediaType: "text/plain", Data: string(part.Data)}
	default:
		return d, p.errors.InvalidRequest("the file %q has the type %q; supported are PDF and text", part.Name, kind)
	}
	return d, nil
}

// kindOf returns a part's media type without parameters, detected from its first bytes if it is not given.
func kindOf(part convo.Part) string {
	said := strings.ToLower(strings.TrimSpace(part.MIME))
	if said == "" && len(part.Data) > 0 {
		said = http.DetectContentType(part.Data)
	}
	kind, _, err := mime.ParseMediaType(said)
	if err != nil {
		return said
	}
	if kind == "image/jpg" {
		return "image/jpeg"
	}
	return kind
}
