package server

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

type valueInput struct {
	RunPath
	Node string `query:"node" doc:"The path of the node, for example refine#2/draft. Without it the value is one of the run: part is inputs, outputs or state then."`
	At   int64  `query:"at" minimum:"0" doc:"As it was after this event; 0 is now"`
	Part string `query:"part" required:"true" enum:"inputs,outputs,metadata,state,effects,messages,waits" doc:"Where the value is"`
	Name string `query:"name" required:"true" doc:"The port, key, effect, or the position in the list from 0"`
	As   string `query:"as" enum:"json,content" default:"json" doc:"content sends a text as text/plain, and the bytes of a file: an object with name, and text or base64"`
	RangeHeaders
}

type contextMessageInput struct {
	RunPath
	Context  string `path:"context" maxLength:"400" doc:"The id of the context, for example main"`
	Position int    `path:"position" minimum:"0" doc:"The position of the message, from 0"`
	At       int64  `query:"at" minimum:"0" doc:"The context as it was after this event; 0 is now"`
	PartOf
	RangeHeaders
}

type sessionMessageInput struct {
	SessionPath
	Position int `path:"position" minimum:"0" doc:"The position of the message, from 0"`
	PartOf
	RangeHeaders
}

// PartOf chooses the data of an image or file of a message.
type PartOf struct {
	Part string `query:"part" pattern:"^[0-9]{0,6}$" doc:"Only the data of the part at this position, from 0"`
}

// RangeHeaders ask for a part of a value. http.ServeContent reads them.
type RangeHeaders struct {
	Range   string `header:"Range" maxLength:"1000" doc:"The bytes of the value that are sent, for example bytes=0-65535"`
	IfRange string `header:"If-Range" maxLength:"200" doc:"The ETag for which Range is valid"`
}

func (s *Server) registerValues() {
	op := func(id, path, tag, summary string) operation {
		return operation{
			id: id, method: http.MethodGet, path: path, scope: Read, summary: summary, tags: []string{tag},
			description: "With the header Range, the answer is 206 with these bytes.",
		}
	}
	register(s, op("getNodeValue", "/v1/runs/{run}/value", "history", "Get one value of a node or of the run in full, or a range of its bytes"), getValue)
	register(s, op("getContextMessage", "/v1/runs/{run}/contexts/{context}/messages/{position}", "history", "Get one message of a context in full, or the data of one of its parts"), getContextMessage)
	register(s, op("getSessionMessage", "/v1/sessions/{session}/messages/{position}", "sessions", "Get one message of a session in full, or the data of one of its parts"), getSessionMessage)
}

// content is what an answer sends, in full or in part.
type content struct {
	media string
	// name is that of a file; "" for what is no file. Browsers save files and show none: a person may have uploaded one
	// with a script.
	name string
	data []byte
}

// file returns content that browsers save.
func file(media, name string, data []byte) content {
	if media == "" {
		media = "application/octet-stream"
	}
	if name == "" {
		name = "file"
	}
	return content{media, name, data}
}

// serve sends content, or the range that the request asks for.
func (c *call) serve(x content) *valueDownload {
	out := &valueDownload{ContentType: x.media, Tag: `"` + hex.EncodeToString(c.digest("content", string(x.data))[:16]) + `"`}
	if x.name != "" {
		out.Disposition = mime.FormatMediaType("attachment", map[string]string{"filename": x.name})
	}
	out.Body = func(h huma.Context) {
		r, w := humago.Unwrap(h)
		http.ServeContent(&longWriter{w, newLongAnswer(w)}, r, "", time.Time{}, bytes.NewReader(x.data))
	}
	return out
}

// valueDownload is the answer with content.
type valueDownload struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Tag         string `header:"ETag"`
	Body        func(huma.Context)
}

// longWriter is a ResponseWriter whose client has time to receive a large answer.
type longWriter struct {
	http.ResponseWriter
	long *longAnswer
}

// maxPiece bounds what is written at once: a client has writeTime to receive it.
const maxPiece = 256 << 10

// Write implements io.Writer.
func (w *longWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		var m int
		m, err = w.long.Write(b[:min(len(b), maxPiece)])
		n, b = n+m, b[m:]
	}
	return n, err
}

func getValue(c *call, in *valueInput) (*valueDownload, error) {
	v, where, err := c.valueOf(in)
	if err != nil {
		return nil, err
	}
	if in.As != "content" {
		return c.serve(content{media: "application/json", data: app.JSONOf(v)}), nil
	}
	x, ok := contentOf(v)
	if !ok {
		return nil, invalidRequest("query.as", where+" is neither a text nor a file with text or base64")
	}
	return c.serve(x), nil
}

// valueOf reads the value that a request names, and says in words which it is.
func (c *call) valueOf(in *valueInput) (v engine.Value, where string, err error) {
	where = fmt.Sprintf("value in %s of node %s with the name", in.Part, in.Node)
	var ok bool
	if in.Node != "" {
		d, n, err := c.nodeOf(&NodeQuery{in.RunPath, in.Node, in.At})
		if err != nil {
			return nil, "", err
		}
		v, ok = valueNamed(d, n, in.Part, in.Name)
	} else {
		view, err := c.inspect(in.Run, in.At)
		if err != nil {
			return nil, "", err
		}
		where = "value in " + in.Part + " of the run with the name"
		switch in.Part {
		case "inputs":
			v, ok = view.Run.Start.Inputs.Get(in.Name)
		case "outputs":
			v, ok = view.Run.Outputs().Get(in.Name)
		case "state":
			v, ok = app.StateValues(view.Run.State()).Get(in.Name)
		default:
			return nil, "", invalidRequest("query.node", "the parts of a run without a node are inputs, outputs and state")
		}
	}
	if !ok {
		return nil, "", notFound(where, in.Name)
	}
	return v, "the " + where + " " + quoted(in.Name), nil
}

// contentOf returns the bytes of a text, or of an object that describes a file. Web pages are sent as plain text.
func contentOf(v engine.Value) (content, bool) {
	const plain = "text/plain; charset=utf-8"
	switch v := v.(type) {
	case string:
		return content{media: plain, data: []byte(v)}, true
	case map[string]any:
		name, _ := v["name"].(string)
		if path, ok := v["path"].(string); ok && name == "" {
			name = path[strings.LastIndexByte(path, '/')+1:]
		}
		media, _ := v["mime"].(string)
		if v["role"] != nil { // a message
			return content{}, false
		}
		if text, ok := v["text"].(string); ok {
			if media == "" {
				media = plain
			}
			return file(media, name, []byte(text)), true
		}
		if coded, ok := v["base64"].(string); ok {
			data, err := base64.StdEncoding.DecodeString(coded)
			return file(media, name, data), err == nil
		}
	}
	return content{}, false
}

func getContextMessage(c *call, in *contextMessageInput) (*valueDownload, error) {
	v, err := c.inspect(in.Run, in.At)
	if err != nil {
		return nil, err
	}
	x, ok := v.Contexts[in.Context]
	if !ok {
		return nil, notFound("context", in.Context)
	}
	r := app.ContextReportOf(x)
	if in.Position >= len(r.Messages) {
		return nil, notFound("message of context "+in.Context+" at the position", strconv.Itoa(in.Position))
	}
	return c.serveMessage(&r.Messages[in.Position], in.Part)
}

func getSessionMessage(c *call, in *sessionMessageInput) (*valueDownload, error) {
	row, err := c.session(in.Session)
	if err != nil {
		return nil, err
	}
	if in.Position >= row.Length {
		return nil, notFound("message of session "+in.Session+" at the position", strconv.Itoa(in.Position))
	}
	list, err := c.app.Store.SessionMessages(c, row.ID, in.Position, in.Position+1)
	if err != nil {
		return nil, err
	}
	return c.serveMessage(&list[0].Message, in.Part)
}

// serveMessage sends a message, or the data of one of its parts.
func (c *call) serveMessage(m *convo.Message, part string) (*valueDownload, error) {
	if part == "" {
		data, err := json.Marshal(m)
		return c.serve(content{media: "application/json", data: data}), err
	}
	i, err := strconv.Atoi(part)
	if err != nil || i >= len(m.Parts) || m.Parts[i].URL != "" {
		return nil, notFound("part of the message with data, at the position", part)
	}
	p := &m.Parts[i]
	return c.serve(file(p.MIME, p.Name, p.Data)), nil
}
