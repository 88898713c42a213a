package gemini

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/llm"
)

// apiPart is one part of a content. Text may be empty: a part with a signature is sent back unchanged.
type apiPart struct {
	Text      *string      `json:"text,omitempty"`
	Call      *apiCall     `json:"functionCall,omitempty"`
	Response  *apiResponse `json:"functionResponse,omitempty"`
	Inline    *apiInline   `json:"inlineData,omitempty"`
	File      *apiFile     `json:"fileData,omitempty"`
	Signature string       `json:"thoughtSignature,omitempty"`
	Thought   bool         `json:"thought,omitempty"`
}

type apiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// apiResponse is the result of a call.
type apiResponse struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
	Parts    []apiPart         `json:"parts,omitempty"`
}

// apiInline is media whose data is in the request, in base64.
type apiInline struct {
	Name string `json:"displayName,omitempty"`
	Data []byte `json:"data"`
	MIME string `json:"mimeType"`
}

// apiFile is media that the vendor has, or fetches.
type apiFile struct {
	Name string `json:"displayName,omitempty"`
	URI  string `json:"fileUri"`
	MIME string `json:"mimeType"`
}

func textPart(text string) json.RawMessage { return mustMarshal(apiPart{Text: &text}) }

func callPart(id, name, arguments, signature string) json.RawMessage {
	return mustMarshal(apiPart{Call: &apiCall{ID: id, Name: name, Args: llm.NormalizeArguments(arguments)}, Signature: signature})
}

// mustMarshal encodes a value that always has a JSON form.
func mustMarshal(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("gemini: write part: " + err.Error())
	}
	return data
}

// mediaPart converts an image or a file to a part of a content.
func (p *Provider) mediaPart(part convo.Part, signature string) (json.RawMessage, error) {
	out, err := p.media(part)
	if err != nil {
		return nil, err
	}
	out.Signature = signature
	return mustMarshal(out), nil
}

// media converts an image or a file, in a content or a function response; its data has precedence over its address.
func (p *Provider) media(part convo.Part) (apiPart, error) {
	if err := p.checkPart(part); err != nil {
		return apiPart{}, err
	}
	if len(part.Data) > 0 {
		return apiPart{Inline: &apiInline{Data: part.Data, MIME: mimeOf(part), Name: part.Name}}, nil
	}
	return apiPart{File: &apiFile{URI: part.URL, MIME: mimeOf(part), Name: part.Name}}, nil
}

func (p *Provider) checkPart(part convo.Part) error {
	switch {
	case part.Kind != "image" && part.Kind != "file":
		return p.errors.InvalidRequest("a part has the unknown kind %q", part.Kind)
	case part.URL == "" && len(part.Data) == 0:
		return p.errors.InvalidRequest("the part %q has neither data nor an address", part.Name)
	}
	return nil
}

// mimeOf returns a part's media type, which the API requires: as given, by the extension of its name or address, by
// its first bytes, or the most likely one of its kind.
func mimeOf(part convo.Part) string {
	if part.MIME != "" {
		return part.MIME
	}
	at := part.URL
	if u, err := url.Parse(at); err == nil {
		at = u.Path
	}
	for _, name := range []string{part.Name, at} {
		if kind := mimeByExtension(strings.ToLower(path.Ext(name))); kind != "" {
			return kind
		}
	}
	if len(part.Data) > 0 {
		kind, _, _ := strings.Cut(http.DetectContentType(part.Data), ";")
		if kind != "application/octet-stream" {
			return kind
		}
	}
	if part.Kind == "image" {
		return "image/png"
	}
	return "application/octet-stream"
}

// mimeByExtension maps the extensions of the types that the vendor's models read.
func mimeByExtension(ending string) string {
	switch ending {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".webp":
		return "image/webp"
	case ".heic":
		return "image/heic"
	case ".heif":
		return "image/heif"
	case ".gif":
		return "image/gif"
	case ".pdf":
		return "application/pdf"
	case ".txt", ".log", ".md":
		return "text/plain"
	case ".csv":
		return "text/csv"
	case ".html", ".htm":
		return "text/html"
	case ".json":
		return "application/json"
	case ".xml":
		return "text/xml"
	case ".mp3":
		return "audio/mp3"
	case ".wav":
		return "audio/wav"
	case ".mp4":
		return "video/mp4"
	}
	return ""
}
