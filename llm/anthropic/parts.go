package anthropic

import (
	"encoding/base64"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/weir-run/weir/convo"
)

const pdf = "application/pdf"

// parts are a message's images and files as content blocks.
func (p *Provider) parts(parts []convo.Part, of int) ([]block, error) {
	var out []block
	for _, part := range parts {
		b := block{of: of, piece: piece{Type: part.Kind}}
		var err error
		switch {
		case part.URL == "" && len(part.Data) == 0:
			return nil, p.speaker.Refused("a part %q has neither data nor an address", part.Name)
		case part.Kind == "image":
			b.OfImage, err = p.image(part)
		case part.Kind == "file":
			b.OfDocument, err = p.document(part)
		default:
			return nil, p.speaker.Refused("a part is of the kind %q", part.Kind)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func (p *Provider) image(part convo.Part) (*sdk.ImageBlockParam, error) {
	if len(part.Data) == 0 {
		return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfURL: &sdk.URLImageSourceParam{URL: part.URL}}}, nil
	}
	kind := kindOf(part)
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, kind) {
		return nil, p.speaker.Refused("an image is of the type %q; JPEG, PNG, GIF and WebP are taken", kind)
	}
	return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: &sdk.Base64ImageSourceParam{
		Data: base64.StdEncoding.EncodeToString(part.Data), MediaType: sdk.Base64ImageSourceMediaType(kind),
	}}}, nil
}

// document is a file: a PDF, by its data or address, or any text.
func (p *Provider) document(part convo.Part) (*sdk.DocumentBlockParam, error) {
	kind := kindOf(part)
	d := &sdk.DocumentBlockParam{}
	if part.Name != "" {
		d.Title = param.NewOpt(part.Name)
	}
	switch {
	case len(part.Data) == 0 && (kind == "" || kind == pdf):
		d.Source.OfURL = &sdk.URLPDFSourceParam{URL: part.URL}
	case len(part.Data) == 0:
		return nil, p.speaker.Refused("a file of the type %q is taken as data only: by its address only a PDF", kind)
	case kind == pdf:
		d.Source.OfBase64 = &sdk.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(part.Data)}
	case utf8.Valid(part.Data) && !blank(string(part.Data)):
		d.Source.OfText = &sdk.PlainTextSourceParam{Data: string(part.Data)}
	default:
		return nil, p.speaker.Refused("a file %q of the type %q is neither a PDF nor text", part.Name, kind)
	}
	return d, nil
}

// kindOf is a part's media type without parameters; where it does not say, what
// its first bytes are.
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
