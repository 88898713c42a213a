package otel

import (
	"encoding/json"
	"strconv"
)

// The types of an export request in OTLP's JSON encoding: ids are hexadecimal, and 64-bit
// numbers are strings.
type (
	exportRequest struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
		SchemaURL  string       `json:"schemaUrl"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope     scope      `json:"scope"`
		Spans     []jsonSpan `json:"spans"`
		SchemaURL string     `json:"schemaUrl"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	jsonSpan struct {
		TraceID           string      `json:"traceId"`
		SpanID            string      `json:"spanId"`
		ParentSpanID      string      `json:"parentSpanId,omitempty"`
		Name              string      `json:"name"`
		Kind              Kind        `json:"kind"`
		StartTimeUnixNano string      `json:"startTimeUnixNano"`
		EndTimeUnixNano   string      `json:"endTimeUnixNano"`
		Attributes        []keyValue  `json:"attributes,omitempty"`
		Events            []jsonEvent `json:"events,omitempty"`
		Links             []jsonLink  `json:"links,omitempty"`
		Status            jsonStatus  `json:"status"`
	}
	jsonEvent struct {
		TimeUnixNano string     `json:"timeUnixNano"`
		Name         string     `json:"name"`
		Attributes   []keyValue `json:"attributes,omitempty"`
	}
	jsonLink struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	jsonStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"` // 2 is an error
	}
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	anyValue struct {
		StringValue *string     `json:"stringValue,omitempty"`
		BoolValue   *bool       `json:"boolValue,omitempty"`
		IntValue    *string     `json:"intValue,omitempty"`
		ArrayValue  *arrayValue `json:"arrayValue,omitempty"`
	}
	arrayValue struct {
		Values []anyValue `json:"values"`
	}
)

// scopeName is the name of the instrumentation scope.
const scopeName = "github.com/weir-run/weir/otel"

// Encode returns spans as the body of an OTLP request in JSON. Service is the name of the
// process among those that send traces, "weir" if it is "".
func Encode(spans []Span, service string) ([]byte, error) {
	if service == "" {
		service = "weir"
	}
	out := make([]jsonSpan, len(spans))
	for i := range spans {
		out[i] = jsonSpanOf(&spans[i])
	}
	return json.Marshal(exportRequest{[]resourceSpans{{
		Resource:   resource{keyValues([]Attribute{{"service.name", service}})},
		ScopeSpans: []scopeSpans{{Scope: scope{Name: scopeName}, Spans: out, SchemaURL: SchemaURL}},
		SchemaURL:  SchemaURL,
	}}})
}

func jsonSpanOf(s *Span) jsonSpan {
	out := jsonSpan{
		TraceID: s.Trace.String(), SpanID: s.ID.String(), Name: s.Name, Kind: s.Kind,
		StartTimeUnixNano: nanos(s.Start), EndTimeUnixNano: nanos(s.End), Attributes: keyValues(s.Attributes),
	}
	if !s.Parent.IsZero() {
		out.ParentSpanID = s.Parent.String()
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, jsonEvent{nanos(e.At), e.Name, keyValues(e.Attributes)})
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, jsonLink{l.Trace.String(), l.Span.String()})
	}
	if s.Failed {
		out.Status = jsonStatus{Code: 2, Message: s.Code}
	}
	return out
}

func nanos(t int64) string { return strconv.FormatInt(t, 10) }

func keyValues(list []Attribute) []keyValue {
	out := make([]keyValue, len(list))
	for i, a := range list {
		out[i] = keyValue{a.Name, anyValueOf(a.Value)}
	}
	return out
}

func anyValueOf(v any) (out anyValue) {
	switch v := v.(type) {
	case string:
		out.StringValue = &v
	case bool:
		out.BoolValue = &v
	case int64:
		n := strconv.FormatInt(v, 10)
		out.IntValue = &n
	case []string:
		out.ArrayValue = &arrayValue{make([]anyValue, len(v))}
		for i, s := range v {
			out.ArrayValue.Values[i].StringValue = &s
		}
	}
	return out
}
