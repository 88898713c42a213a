package otel_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The types of OTLP's JSON, written from the protocol and not from the encoder.
type (
	traceRequest struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []attribute `json:"attributes"`
			} `json:"resource"`
			ScopeSpans []struct {
				Scope struct {
					Name    string `json:"name"`
					Version string `json:"version"`
				} `json:"scope"`
				Spans     []span `json:"spans"`
				SchemaURL string `json:"schemaUrl"`
			} `json:"scopeSpans"`
			SchemaURL string `json:"schemaUrl"`
		} `json:"resourceSpans"`
	}
	span struct {
		TraceID           string      `json:"traceId"`
		SpanID            string      `json:"spanId"`
		ParentSpanID      string      `json:"parentSpanId"`
		Name              string      `json:"name"`
		Kind              int         `json:"kind"`
		StartTimeUnixNano string      `json:"startTimeUnixNano"`
		EndTimeUnixNano   string      `json:"endTimeUnixNano"`
		Attributes        []attribute `json:"attributes"`
		Events            []struct {
			TimeUnixNano string      `json:"timeUnixNano"`
			Name         string      `json:"name"`
			Attributes   []attribute `json:"attributes"`
		} `json:"events"`
		Links []struct {
			TraceID string `json:"traceId"`
			SpanID  string `json:"spanId"`
		} `json:"links"`
		Status struct {
			Message string `json:"message"`
			Code    int    `json:"code"`
		} `json:"status"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		StringValue *string `json:"stringValue"`
		BoolValue   *bool   `json:"boolValue"`
		IntValue    *string `json:"intValue"`
		ArrayValue  *struct {
			Values []value `json:"values"`
		} `json:"arrayValue"`
	}
)

// attr returns an attribute as text, "" if there is none.
func (s *span) attr(name string) string {
	for _, a := range s.Attributes {
		if a.Key != name {
			continue
		}
		switch v := a.Value; {
		case v.StringValue != nil:
			return *v.StringValue
		case v.IntValue != nil:
			return *v.IntValue
		case v.BoolValue != nil:
			return strconv.FormatBool(*v.BoolValue)
		case v.ArrayValue != nil:
			var list []string
			for _, e := range v.ArrayValue.Values {
				list = append(list, *e.StringValue)
			}
			return strings.Join(list, ",")
		}
	}
	return ""
}

// receiver is a server for OTLP over HTTP that accepts nothing but what the protocol has.
type receiver struct {
	url string

	mu     sync.Mutex
	spans  []span
	bodies strings.Builder
	wrong  []string
	answer func(request int) (status int, body string) // nil takes everything
	count  int
	header http.Header
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.header = req.Header
	body, err := io.ReadAll(req.Body)
	if err != nil || req.Method != http.MethodPost || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/json" {
		r.wrong = append(r.wrong, fmt.Sprint(req.Method, req.URL, req.Header, err))
	}
	if r.answer != nil {
		if status, text := r.answer(r.count); text != "" || status != http.StatusOK {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
			return
		}
	}
	var v traceRequest
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		r.wrong = append(r.wrong, err.Error())
	}
	r.bodies.Write(body)
	for _, rs := range v.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			r.spans = append(r.spans, ss.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

// received returns the spans so far, each of which it checks by itself.
func (r *receiver) received(t *testing.T) []span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.wrong {
		t.Error(w)
	}
	for _, s := range r.spans {
		for id, size := range map[string]int{s.TraceID: 16, s.SpanID: 8, s.ParentSpanID: 8} {
			b, err := hex.DecodeString(id)
			if err != nil || len(b) != size && (id != "" || size != 8) || strings.ToLower(id) != id {
				t.Errorf("span %s: the id %q", s.Name, id)
			}
		}
		start, err1 := strconv.ParseUint(s.StartTimeUnixNano, 10, 64)
		end, err2 := strconv.ParseUint(s.EndTimeUnixNano, 10, 64)
		if err1 != nil || err2 != nil || start == 0 || end < start {
			t.Errorf("span %s: from %q to %q", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
		if s.Kind != 1 && s.Kind != 3 || s.Name == "" {
			t.Errorf("span %q: kind %d", s.Name, s.Kind)
		}
	}
	return r.spans
}

// checkTrace reports what is wrong with spans that are to be one whole trace.
func checkTrace(t *testing.T, spans []span) {
	t.Helper()
	byID := make(map[string]*span)
	roots := 0
	for i := range spans {
		s := &spans[i]
		if byID[s.SpanID] != nil {
			t.Errorf("span %s (%s) was sent twice", s.Name, s.attr("weir.node.path"))
		}
		byID[s.SpanID] = s
		if s.TraceID != spans[0].TraceID {
			t.Errorf("span %s belongs to another trace", s.Name)
		}
		if s.ParentSpanID == "" {
			roots++
		}
	}
	if roots != 1 {
		t.Errorf("%d roots among %d spans", roots, len(spans))
	}
	for _, s := range spans {
		p := byID[s.ParentSpanID]
		switch {
		case s.ParentSpanID == "":
		case p == nil:
			t.Errorf("the parent of span %s (%s) is missing", s.Name, s.attr("weir.node.path"))
		case len(s.StartTimeUnixNano) == len(p.StartTimeUnixNano) && s.StartTimeUnixNano < p.StartTimeUnixNano:
			t.Errorf("span %s starts before its parent %s", s.Name, p.Name)
		}
	}
}
