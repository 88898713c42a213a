package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/weir-run/weir/convo"
)

// pieces splits text into n runes each, 3 if n is 0.
func pieces(text string, n int) []string {
	if n <= 0 {
		n = 3
	}
	var out []string
	runes := []rune(text)
	for len(runes) > 0 {
		k := min(n, len(runes))
		out = append(out, string(runes[:k]))
		runes = runes[k:]
	}
	return out
}

// frame returns one server-sent event.
func frame(event, data string) string {
	if event == "" {
		return "data: " + data + "\n\n"
	}
	return "event: " + event + "\ndata: " + data + "\n\n"
}

// content returns the content of a message in either of OpenAI's APIs: text, or a list of parts.
func content(raw json.RawMessage) (string, []convo.Part) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var list []map[string]any
	if json.Unmarshal(raw, &list) != nil {
		return "", nil // the schema check has reported it
	}
	var (
		b     strings.Builder
		parts []convo.Part
	)
	for _, p := range list {
		kind, _ := p["type"].(string)
		switch kind {
		case "text", "input_text", "output_text":
			s, _ := p["text"].(string)
			b.WriteString(s)
		case "refusal":
			s, _ := p["refusal"].(string)
			b.WriteString(s)
		case "image_url": // Chat
			image, _ := p["image_url"].(map[string]any)
			parts = append(parts, part("image", image["url"], nil))
		case "input_image":
			parts = append(parts, part("image", p["image_url"], nil))
		case "file": // Chat
			file, _ := p["file"].(map[string]any)
			parts = append(parts, part("file", file["file_data"], file["filename"]))
		case "input_file":
			at := p["file_data"]
			if at == nil {
				at = p["file_url"]
			}
			parts = append(parts, part("file", at, p["filename"]))
		}
	}
	return b.String(), parts
}

// part returns an image or a file by its address, which may contain its data.
func part(kind string, address, name any) convo.Part {
	at, _ := address.(string)
	p := convo.Part{Kind: kind}
	p.Name, _ = name.(string)
	head, data, ok := strings.Cut(at, ";base64,")
	if mime, is := strings.CutPrefix(head, "data:"); ok && is {
		p.MIME = mime
		p.Data, _ = base64.StdEncoding.DecodeString(data) // invalid data equals nothing
		return p
	}
	p.URL = at
	return p
}
