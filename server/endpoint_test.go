package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// allParameters has a parameter of each type and place.
type allParameters struct {
	ID     string    `path:"id" maxLength:"4"`
	Text   string    `query:"text" enum:"a,b"`
	Limit  int       `query:"limit" minimum:"1" default:"50"`
	At     int64     `query:"at"`
	All    bool      `query:"all"`
	Cost   float64   `query:"cost" maximum:"9"`
	List   []string  `query:"list" maxItems:"2"`
	Since  time.Time `query:"since"`
	Needed string    `query:"needed" required:"true"`
	Key    string    `header:"X-Key"`
	Body   struct {
		Name string `json:"name" minLength:"1"`
	}
}

// echoOutput sends the input back.
type echoOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     allParameters
}

// newEcho serves an endpoint that sends its input back.
func newEcho(t *testing.T) http.Handler {
	t.Helper()
	r := newRoutes()
	api := newAPI(r, "")
	op := &huma.Operation{OperationID: "echo", Method: http.MethodPost, Path: "/echo/{id}", MaxBodyBytes: 100, BodyReadTimeout: bodyTime}
	r.scopes["POST /echo/{id}"] = Public
	e := newEndpoint(api, op, reflect.TypeFor[allParameters](), reflect.TypeFor[echoOutput](), func(_ context.Context, in any) (any, error) {
		return &echoOutput{Status: http.StatusAccepted, Location: "/here", Body: *in.(*allParameters)}, nil
	})
	api.Adapter().Handle(op, e.serve)
	return r
}

func TestAnEndpointReadsEachKindOfParameter(t *testing.T) {
	h := newEcho(t)
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/echo/x?text=b&at=-7&all=true&cost=1.5&list=u,v&since=2026-01-02T03:04:05Z&needed=n", strings.NewReader(`{"name":"Ada"}`))
	r.Header.Set("X-Key", "k")
	h.ServeHTTP(w, r)
	want := allParameters{ID: "x", Text: "b", Limit: 50, At: -7, All: true, Cost: 1.5, List: []string{"u", "v"}, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Needed: "n", Key: "k"}
	want.Body.Name = "Ada"
	var got allParameters
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v\nwant %+v", got, err, want)
	}
	if w.Code != http.StatusAccepted || w.Header().Get("Location") != "/here" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("answered %d with the headers %v", w.Code, w.Header())
	}
}

func TestAnEndpointRefusesWhatDoesNotFitItsDescription(t *testing.T) {
	h := newEcho(t)
	const good = `{"name":"Ada"}`
	for _, c := range []struct {
		query, body string
		status      int
		place, says string
	}{
		{"needed=n&other=1", good, 422, "query.other", "unknown query parameter"},
		{"", good, 422, "query.needed", "missing"},
		{"needed=n&text=c", good, 422, "query.text", "a, b"},
		{"needed=n&limit=0", good, 422, "query.limit", ">= 1"},
		{"needed=n&limit=x", good, 422, "query.limit", "invalid integer"},
		{"needed=n&at=1.5", good, 422, "query.at", "invalid integer"},
		{"needed=n&all=maybe", good, 422, "query.all", "invalid boolean"},
		{"needed=n&cost=x", good, 422, "query.cost", "invalid float"},
		{"needed=n&cost=10", good, 422, "query.cost", "<= 9"},
		{"needed=n&list=a,b,c", good, 422, "query.list", "2"},
		{"needed=n&since=today", good, 422, "query.since", "invalid date/time"},
		{"needed=n", "", 400, "", "request body is required"},
		{"needed=n", `{"name":`, 400, "body", "unexpected"},
		{"needed=n", `{"name":"a","name":"b"}`, 400, "body", "name"},
		{"needed=n", `{"name":""}`, 422, "body.name", "length"},
		{"needed=n", `{"name":"a","more":1}`, 422, "body.more", "unexpected property"},
		{"needed=n", `{"name":"` + strings.Repeat("a", 100) + `"}`, 413, "", "too large"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/echo/x?"+c.query, strings.NewReader(c.body)))
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: answered %d, %s (%v)", c.query, c.body, w.Code, w.Body, err)
			continue
		}
		place, says := "", p.Detail
		if len(p.Errors) > 0 {
			place, says = p.Errors[0].Place, p.Errors[0].Message
		}
		if len(p.Errors) > 1 || place != c.place || !strings.Contains(says, c.says) {
			t.Errorf("%s %s: refused with %+v, want %s: %s", c.query, c.body, p, c.place, c.says)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/echo/long1?needed=n", strings.NewReader(good)))
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "path.id") {
		t.Errorf("a long id: answered %d, %s", w.Code, w.Body)
	}
}

// Types that an endpoint would ignore in part are mistakes of the programmer.
func TestAnEndpointRefusesTypesThatItDoesNotKnow(t *testing.T) {
	type pointer struct {
		A *string `query:"a"`
	}
	type untagged struct{ A string }
	type number struct {
		A int `header:"A"`
	}
	type defaults struct {
		Body struct {
			A int `json:"a" default:"1"`
		}
	}
	nothing := reflect.TypeFor[struct{}]()
	for name, types := range map[string][2]reflect.Type{
		"a pointer":                  {reflect.TypeFor[pointer](), nothing},
		"an input without a place":   {reflect.TypeFor[untagged](), nothing},
		"a default in a body":        {reflect.TypeFor[defaults](), nothing},
		"an output without a header": {nothing, reflect.TypeFor[untagged]()},
		"a number as a header":       {nothing, reflect.TypeFor[number]()},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it is accepted")
				}
			}()
			newEndpoint(newAPI(newRoutes(), ""), &huma.Operation{OperationID: "x", Method: http.MethodGet, Path: "/x"}, types[0], types[1], nil)
		})
	}
}
