package token

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"

	"github.com/weir-run/weir/convo"
)

// The cost of a part with unknown content: a file that the vendor fetches itself.
const unknownFileTokens = 6000

// A page of a PDF is text and a picture of it: Anthropic gives 1,500 to 3,000
// tokens of text alone (docs.claude.com, "PDF support").
const pageTokens = 3000

// part returns the cost of one image or file, by the vendor's rules.
func (c Counter) part(p convo.Part) int {
	if p.Kind == "image" {
		return c.image(p.Data)
	}
	named := c.Text(p.Name)
	switch {
	case len(p.Data) == 0:
		return named + unknownFileTokens
	case isText(p.MIME):
		return named + c.Text(string(p.Data))
	case p.MIME == "application/pdf":
		return named + pages(p.Data)*pageTokens
	default:
		return named + (len(p.Data)+3)/4
	}
}

func isText(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	return strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "json") ||
		strings.HasSuffix(mime, "xml") || strings.HasSuffix(mime, "yaml")
}

// pages of a PDF: the page objects that are visible without decompressing, but at least one
// for each 100 KB.
func pages(pdf []byte) int {
	n := 0
	for _, key := range []string{"/Type/Page", "/Type /Page"} {
		n += bytes.Count(pdf, []byte(key)) - bytes.Count(pdf, []byte(key+"s"))
	}
	return max(n, 1+len(pdf)/100_000)
}

// image returns the cost of an image. Only its header is read; if that does not contain the
// size (a URL, WebP, HEIC), the cost is the vendor's maximum.
func (c Counter) image(data []byte) int {
	width, height := size(data)
	switch c.vendor {
	case anthropic:
		return anthropicImage(width, height)
	case gemini:
		return geminiImage(width, height)
	default:
		return openaiImage(width, height)
	}
}

// size in pixels, 0 and 0 if the header does not contain it.
func size(data []byte) (width, height int) {
	for _, decode := range []func(*bytes.Reader) (image.Config, error){
		func(r *bytes.Reader) (image.Config, error) { return png.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Config, error) { return jpeg.DecodeConfig(r) },
		func(r *bytes.Reader) (image.Config, error) { return gif.DecodeConfig(r) },
	} {
		if c, err := decode(bytes.NewReader(data)); err == nil && c.Width > 0 && c.Height > 0 {
			return c.Width, c.Height
		}
	}
	return 0, 0
}

// openaiImage returns the rule for gpt-4o, gpt-4.1 and their like at high detail,
// which "auto" comes to for all but small images: fit into 2,048 by 2,048, then
// the short side to 768, then 85 and 170 for each tile of 512 by 512
// (platform.openai.com, "Images and vision", calculating costs).
func openaiImage(width, height int) int {
	const base, tile, most = 85, 170, 8 // 2,048 by 768 is the largest
	if width == 0 {
		return base + most*tile
	}
	w, h := float64(width), float64(height)
	if long := max(w, h); long > 2048 {
		w, h = w*2048/long, h*2048/long
	}
	if short := min(w, h); short > 768 {
		w, h = w*768/short, h*768/short
	}
	tiles := func(side float64) int { return (int(side+0.5) + 511) / 512 }
	return base + tile*max(tiles(w), 1)*max(tiles(h), 1)
}

// anthropicImage returns the rule for Claude: a token for each 750 pixels, at most
// 4,784, which only the newest models reach; others scale down to about 1,600
// (docs.claude.com, "Vision", image costs).
func anthropicImage(width, height int) int {
	const pixels, most = 750, 4784
	if width == 0 || width > most*pixels/height {
		return most
	}
	return (width*height + pixels - 1) / pixels
}

// geminiImage returns the rule for Gemini: 258 tokens for a small image and for each
// tile of a larger one, tiles having two thirds of the short side
// (ai.google.dev, "Image understanding", token calculation); from Gemini 3 on
// 1,120 for an image at the resolution it takes by default.
func geminiImage(width, height int) int {
	const tile, small, whole, most = 258, 384, 1120, 12
	switch {
	case width == 0:
		return most * tile
	case width <= small && height <= small:
		return tile
	}
	side := max(min(width, height)*2/3, 1)
	n := ((width + side - 1) / side) * ((height + side - 1) / side)
	return max(whole, min(n, most)*tile)
}
