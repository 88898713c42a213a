package openai

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/server"
)

// fileScheme begins the URL of a part that names an uploaded file. Clients cannot send such a URL.
const fileScheme = "file-id:"

// loadFiles replaces the parts of messages that name uploaded files by their content, and returns the function that records
// which session has it.
func loadFiles(c *server.Caller, place string, list []convo.Message) (usedBy func(session string) error, err error) {
	var used []func(string) error
	for i := range list {
		m := &list[i]
		for j := range m.Parts {
			id, ok := strings.CutPrefix(m.Parts[j].URL, fileScheme)
			if !ok {
				continue
			}
			p, by, err := c.FilePart(place+"."+strconv.Itoa(i), m.Parts[j].Kind, id)
			if err != nil {
				return nil, err
			}
			m.Parts = slices.Clone(m.Parts)
			m.Parts[j], used = p, append(used, by)
		}
	}
	return func(session string) error {
		var err error
		for _, by := range used {
			err = errors.Join(err, by(session))
		}
		return err
	}, nil
}
