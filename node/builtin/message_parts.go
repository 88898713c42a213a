package builtin

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// partsOf returns the images and files of a message that came as a value: a list of {kind, mime, name, data, url}, where data is
// base64.
func partsOf(v engine.Value) ([]convo.Part, error) {
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("parts: expected a list, got %s", describeValue(v))
	}
	out := make([]convo.Part, len(list))
	for i, x := range list {
		var err error
		if out[i], err = partOf(x); err != nil {
			return nil, fmt.Errorf("parts.%d: %w", i, err)
		}
	}
	return out, nil
}

func partOf(v engine.Value) (p convo.Part, err error) {
	m, _ := v.(map[string]any)
	p.Kind, _ = m["kind"].(string)
	p.MIME, _ = m["mime"].(string)
	p.Name, _ = m["name"].(string)
	p.URL, _ = m["url"].(string)
	data, _ := m["data"].(string)
	switch {
	case p.Kind != "image" && p.Kind != "file":
		return p, fmt.Errorf("kind is %s, expected image or file", describeValue(m["kind"]))
	case (p.URL == "") == (data == ""):
		return p, fmt.Errorf("expected either data (base64) or url")
	case p.URL != "" && !strings.HasPrefix(p.URL, "https://") && !strings.HasPrefix(p.URL, "http://"):
		return p, fmt.Errorf("url: expected an https: or http: address")
	}
	if p.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
		return p, fmt.Errorf("data: %w", err)
	}
	if len(p.Data) == 0 {
		p.Data = nil
	}
	return p, nil
}
