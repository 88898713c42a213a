package server

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/excerpt"
)

// ValueBound is the parameter of answers that have values of runs.
type ValueBound struct {
	MaxValue int `query:"maxValue" minimum:"0" maximum:"67108864" default:"65536" doc:"Values of more bytes are left out; the member truncated says where they can be read"`
}

// defaultMaxValue bounds the values of answers whose request has no such parameter, in bytes.
const defaultMaxValue = 64 << 10

// pointer escapes a name within a JSON Pointer.
func pointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// boundValues replaces the values of more than bound bytes by null, in a copy. The URL of a value is at, with the name.
func boundValues(list engine.Values, place, at string, bound int) (engine.Values, []app.TruncatedValue) {
	var cut []app.TruncatedValue
	for i, x := range list {
		s := shownWithin(x.Name, app.JSONOf(x.Value), bound)
		if string(s.Value) != "null" || s.Size <= bound {
			continue
		}
		if cut == nil {
			list = slices.Clone(list)
		}
		list[i].Value = nil
		cut = append(cut, app.TruncatedValue{Place: place + "/" + pointer(x.Name), Size: s.Size, Excerpt: s.Excerpt, URL: at + "&name=" + url.QueryEscape(x.Name)})
	}
	return list, cut
}

// valueURL is where a value of a run is, without its name. A run as a whole has values as well: node is "" then.
func (s *Server) valueURL(run, node, part string, at int64) string {
	u := s.options.BasePath + "/v1/runs/" + url.PathEscape(run) + "/value?part=" + part
	if node != "" {
		u += "&node=" + url.QueryEscape(node)
	}
	return u + atQuery("&", at)
}

func atQuery(sep string, at int64) string {
	if at == 0 {
		return ""
	}
	return sep + "at=" + itoa(at)
}

// boundReport leaves large outputs out of a report; place is where in the answer it is.
func (s *Server) boundReport(r app.RunReport, place string) app.RunReport {
	r.Outputs, r.Truncated = boundValues(r.Outputs, place+"/outputs", s.valueURL(r.Run, "", "outputs", 0), defaultMaxValue)
	return r
}

// boundDetails leaves large values out of a run.
func (s *Server) boundDetails(d *app.RunDetails, at int64, bound int) []app.TruncatedValue {
	out := []app.TruncatedValue{}
	cut := func(list *engine.Values, place, node, part string) {
		var more []app.TruncatedValue
		*list, more = boundValues(*list, place, s.valueURL(d.Run, node, part, at), bound)
		out = append(out, more...)
	}
	cut(&d.Inputs, "/inputs", "", "inputs")
	cut(&d.Outputs, "/outputs", "", "outputs")
	cut(&d.State, "/state", "", "state")
	for i := range d.Nodes {
		n := &d.Nodes[i]
		cut(&n.Outputs, fmt.Sprintf("/nodes/%d/outputs", i), n.Node, "outputs")
		cut(&n.Metadata, fmt.Sprintf("/nodes/%d/metadata", i), n.Node, "metadata")
	}
	return out
}

// boundMessage shortens the texts of a message to their beginnings, and leaves out its data, where they have more than
// bound bytes. at is the URL of the message.
func boundMessage(m convo.Message, place, at string, bound int) (convo.Message, []app.TruncatedValue) {
	var cut []app.TruncatedValue
	text := func(name, s string) string {
		if len(s) <= bound {
			return s
		}
		short := excerpt.Bytes(s, maxExcerpt)
		cut = append(cut, app.TruncatedValue{Place: place + name, Size: len(s), Excerpt: short, URL: at})
		return short
	}
	m.Text, m.Reasoning = text("/text", m.Text), text("/reasoning", m.Reasoning)
	m.Calls, m.Parts = slices.Clone(m.Calls), slices.Clone(m.Parts)
	for i := range m.Calls {
		m.Calls[i].Arguments = text(fmt.Sprintf("/calls/%d/arguments", i), m.Calls[i].Arguments)
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		p.URL = text(fmt.Sprintf("/parts/%d/url", i), p.URL)
		if len(p.Data) > bound {
			cut = append(cut, app.TruncatedValue{Place: fmt.Sprintf("%s/parts/%d/data", place, i), Size: len(p.Data), URL: partURL(at, i)})
			p.Data = nil
		}
	}
	if len(m.Native) > bound {
		cut = append(cut, app.TruncatedValue{Place: place + "/native", Size: len(m.Native), URL: at})
		m.Native = nil
	}
	if data := app.JSONOf(map[string]any(m.Metadata)); len(data) > bound {
		cut = append(cut, app.TruncatedValue{Place: place + "/metadata", Size: len(data), URL: at})
		m.Metadata = nil
	}
	return m, cut
}

func partURL(message string, part int) string {
	sep := "?"
	if strings.Contains(message, "?") {
		sep = "&"
	}
	return message + sep + "part=" + strconv.Itoa(part)
}

// boundRows shortens the messages of a session.
func (s *Server) boundRows(session, place string, rows []app.MessageRow, bound int) (all []app.TruncatedValue) {
	for i := range rows {
		m, cut := boundMessage(rows[i].Message, place+strconv.Itoa(i)+"/message", s.sessionMessageURL(session, rows[i].Position), bound)
		rows[i].Message, all = m, append(all, cut...)
	}
	return all
}

func (s *Server) contextMessageURL(run, context string, position int, at int64) string {
	return fmt.Sprintf("%s/v1/runs/%s/contexts/%s/messages/%d%s", s.options.BasePath, url.PathEscape(run), url.PathEscape(context), position, atQuery("?", at))
}

func (s *Server) sessionMessageURL(session string, position int) string {
	return fmt.Sprintf("%s/v1/sessions/%s/messages/%d", s.options.BasePath, url.PathEscape(session), position)
}
