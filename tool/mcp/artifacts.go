package mcptool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-run/weir/tool"
	"github.com/weir-run/weir/trajectory"
)

// The limits of the declarations of one result: the number of artifacts, and the bytes of a
// descriptive text.
const (
	maxDeclared   = 200
	maxTextLength = 2000
)

// declare declares the resources, images and sounds of a result for the trajectory, as the
// server describes them. What cannot be declared is omitted; the model gets it anyway.
func (r *remoteTool) declare(call tool.Call, result *mcp.CallToolResult) {
	if call.OnDeclare == nil {
		return
	}
	declared := 0
	for _, c := range result.Content {
		if a, ok := r.artifact(c); ok && declared < maxDeclared && call.Declare(a) == nil {
			declared++
		}
	}
}

// artifact returns the data in, or referenced by, a piece of a result. A resource is named
// by its URI, which distinguishes it from others with the same name, and data without one
// by its digest.
func (r *remoteTool) artifact(c mcp.Content) (a trajectory.Artifact, ok bool) {
	switch c := c.(type) {
	case *mcp.ResourceLink:
		a = r.resource(trajectory.File, c.URI, c.MIMEType)
		a.Description = r.cleanText(c.Description)
		r.setAttribute(a, "title", cmp.Or(c.Title, c.Name))
		if c.Size != nil && *c.Size >= 0 {
			a.Attributes["size"] = *c.Size
		}
		return a, c.URI != ""
	case *mcp.EmbeddedResource:
		if c.Resource == nil || c.Resource.URI == "" {
			return a, false
		}
		if c.Resource.Text == "" {
			a = r.resource(trajectory.File, c.Resource.URI, c.Resource.MIMEType)
			a.Attributes["size"] = int64(len(c.Resource.Blob))
			return a, true
		}
		a = r.resource(trajectory.Knowledge, c.Resource.URI, c.Resource.MIMEType)
		a.Attributes["size"] = int64(len(c.Resource.Text))
		r.setAttribute(a, "text", c.Resource.Text)
		return a, true
	case *mcp.ImageContent:
		return r.blob("image", c.MIMEType, c.Data)
	case *mcp.AudioContent:
		return r.blob("audio", c.MIMEType, c.Data)
	}
	return a, false
}

func (r *remoteTool) resource(kind trajectory.Type, uri, media string) trajectory.Artifact {
	a := trajectory.Artifact{Type: kind, Name: tool.DataName(r.client.secrets.Scrub(uri)), Attributes: map[string]any{}}
	r.setAttribute(a, "mimeType", media)
	return a
}

// blob is data without a name.
func (r *remoteTool) blob(kind, media string, data []byte) (trajectory.Artifact, bool) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	a := r.resource(trajectory.File, kind+" "+digest[:12], media)
	a.Attributes["size"], a.Attributes["sha256"] = int64(len(data)), digest
	return a, true
}

// setAttribute sets an attribute, unless its value is empty.
func (r *remoteTool) setAttribute(a trajectory.Artifact, name, text string) {
	if text != "" {
		a.Attributes[name] = r.cleanText(text)
	}
}

// cleanText returns a text of the server in a form that may be stored.
func (r *remoteTool) cleanText(text string) string {
	return tool.Cut(tool.Clean(r.client.secrets.Scrub(text)), maxTextLength)
}
