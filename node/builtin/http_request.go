package builtin

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/flow"
	"github.com/weir-run/weir/node"
	"github.com/weir-run/weir/tool"
)

// The bounds of a request.
const (
	defaultHTTPTimeout = 30 * time.Second
	defaultHTTPBytes   = 1 << 20
	maxHTTPBytes       = 64 << 20
)

// httpRequestNode makes one HTTP request.
type httpRequestNode struct {
	Method    string         `json:"method"`
	URL       template       `json:"url"`
	Query     template       `json:"query"`
	Headers   template       `json:"headers"`
	Body      template       `json:"body"`
	Timeout   duration       `json:"timeout"`
	MaxBytes  int64          `json:"maxBytes"`
	Expect    expectedStatus `json:"expect"`
	OnUnknown string         `json:"onUnknown"`
}

func httpRequestType() node.Type {
	return define[httpRequestNode](&flow.TypeSpec{
		Name:     "httpRequest",
		Category: "io",
		Summary:  "Makes an HTTP request; addresses inside the own network are out of reach.",
		Doc:      httpRequestDoc,
		Ports: flow.Ports{
			Out: []flow.Port{
				{Name: "status", Type: flow.TypeNumber, Description: "The status code."},
				{Name: "headers", Type: flow.TypeObject, Description: "The headers, by name in small letters."},
				{Name: "body", Type: flow.TypeText, Description: "The body, where it is text."},
				{Name: "base64", Type: flow.TypeText, Description: "The body in base64, where it is not text."},
				{Name: "json", Type: flow.TypeAny, Description: "The body, where it is JSON."},
			},
			AnyIn: true,
		},
		Settings: objectSchema(httpRequestSettings(), "url"),
		Check:    checkHTTPRequest,
		ActsOutside: func(with map[string]any) bool {
			method, _ := with["method"].(string)
			return !(&httpRequestNode{Method: methodOf(method)}).isSafeMethod()
		},
		Examples: []flow.Example{{
			Name: "the own network is out of reach",
			Flow: `
weir: 1
name: metadata
nodes:
  get: {type: httpRequest, with: {url: "http://169.254.169.254/latest/meta-data/"}}
outputs: {body: "{{ get.body }}"}
`,
			Error: CodeHTTPBlocked,
		}, {
			Name: "continue without an answer",
			Flow: `
weir: 1
name: fallback
nodes:
  get: {type: httpRequest, with: {url: "http://127.0.0.1:9/"}}
  note: {type: template, in: {problem: "{{ get.error }}"}, with: {text: "no answer: {{ inputs.problem.code }}"}}
outputs: {note: "{{ note.text }}"}
`,
			Outputs: map[string]any{"note": "no answer: " + CodeHTTPBlocked},
		}},
	})
}

const httpRequestDoc = `| setting | what |
|---|---|
| ` + "`url`" + ` | http or https; a template over ` + "`inputs.*`" + ` (whatever is wired to the node), ` + "`state.*`, `run.*`" + ` |
| ` + "`method`" + ` | GET (default), HEAD, POST, PUT, PATCH, DELETE or OPTIONS |
| ` + "`query`" + ` | an object of parameters added to the URL, each escaped; a list repeats the name, null leaves it out |
| ` + "`headers`" + ` | an object of headers; null leaves one out |
| ` + "`body`" + ` | a text is sent as it is, anything else as JSON |
| ` + "`timeout`" + ` | for the whole exchange (default 30 s) |
| ` + "`maxBytes`" + ` | the longest body that is accepted, unpacked (default 1 MiB, at most 64 MiB) |
| ` + "`expect`" + ` | the statuses that are no failure: codes and classes such as ` + "`[2xx, 404]`" + `, or ` + "`any`" + ` (default 2xx) |
| ` + "`onUnknown`" + ` | what to do where the outcome is not known: ` + "`retry`, `ask`, `fail`" + ` |

| output | what |
|---|---|
| ` + "`status`" + ` | the status code |
| ` + "`headers`" + ` | an object, names in small letters, repeated ones joined by a comma |
| ` + "`body`" + ` or ` + "`base64`" + ` | the body as text, or in base64 where it is not UTF-8 |
| ` + "`json`" + ` | the body as a value, where its content type says JSON and it is |

**Values in the URL.** Put what comes from people or models into ` + "`query`" + `, where it is escaped; in
` + "`url`" + ` itself it could change the path.

**Secrets.** ` + "`query`, `headers` and `body`" + ` may read ` + "`{{ secrets.NAME }}`" + `. It is resolved when the
request is made, is in no port and no journal, and is taken out of whatever comes back.

**Where it can go.** Only public addresses. Loopback, private, link-local, carrier-grade
NAT, multicast and cloud metadata addresses are refused with ` + "`http_blocked`" + `, whatever name
leads to them and also after a redirect; the configuration can allow some. At most five
redirects are followed; headers do not follow to another host. Proxy settings of the
environment are ignored.

**Failures.** Another status is ` + "`http_status`" + `; 408, 425, 429 and 5xx may be retried, others are
permanent. ` + "`retry`" + ` makes the request again.

**Twice or not at all.** A request in flight when the process dies may or may not have been
acted on. GET, HEAD and OPTIONS are then made again; for other methods a person is asked,
unless ` + "`onUnknown`" + ` says otherwise. They carry an ` + "`Idempotency-Key`" + ` that stays the same, so that
a server which knows it acts once. A connection that breaks after such a request was sent
fails with ` + "`http_unknown`" + `, which is retried only with ` + "`onUnknown: retry`" + `.`

func httpRequestSettings() map[string]any {
	return map[string]any{
		"url":     templateSchema("string", "Where to, http or https."),
		"method":  choiceSchema("The method.", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
		"query":   withAnyMembers(secretTemplateSchema("object", "Parameters added to the URL.")),
		"headers": withAnyMembers(secretTemplateSchema("object", "Headers by name.")),
		"body":    secretTemplateSchema("", "What to send: a text, or a value that is sent as JSON."),
		"timeout": durationSchema("For the whole exchange. Default: 30."),
		"maxBytes": map[string]any{
			"type": "integer", "minimum": 1, "maximum": maxHTTPBytes,
			"description": "The longest body that is accepted, in bytes. Default: 1048576.",
		},
		"expect": map[string]any{
			"description": "The statuses that are no failure. Default: [2xx].",
			"oneOf": []any{
				map[string]any{"const": "any"},
				map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"oneOf": []any{
					map[string]any{"type": "integer", "minimum": 100, "maximum": 599},
					map[string]any{"type": "string", "enum": []any{"2xx", "3xx", "4xx", "5xx"}},
				}}},
			},
		},
		"onUnknown": map[string]any{
			"type": "string", "enum": []any{"retry", "ask", "fail"},
			"description": "What to do where the outcome is not known. Default: retry for GET, HEAD and OPTIONS, else ask.",
		},
	}
}

// withAnyMembers says that an object's members may be anything; without it an
// object is taken for a JSON Schema.
func withAnyMembers(s map[string]any) map[string]any {
	s["additionalProperties"] = map[string]any{}
	return s
}

func checkHTTPRequest(with map[string]any) []flow.Problem {
	if m, ok := with["method"].(string); with["body"] != nil && (!ok || m == "GET" || m == "HEAD") {
		return []flow.Problem{settingProblem("body", "a %s request cannot have a body", methodOf(m))}
	}
	return nil
}

// methodOf returns the method of the settings, GET if there is none.
func methodOf(m string) string {
	if m == "" {
		return "GET"
	}
	return m
}

func (n *httpRequestNode) setDefaults() {
	n.Method = methodOf(n.Method)
	if n.Timeout.Duration == 0 {
		n.Timeout.Duration = defaultHTTPTimeout
	}
	if n.MaxBytes == 0 {
		n.MaxBytes = defaultHTTPBytes
	}
	if n.OnUnknown == "" {
		n.OnUnknown = "ask"
		if n.isSafeMethod() {
			n.OnUnknown = "retry"
		}
	}
}

// isSafeMethod reports whether the method only asks (RFC 9110, safe methods).
func (n *httpRequestNode) isSafeMethod() bool {
	return n.Method == "GET" || n.Method == "HEAD" || n.Method == "OPTIONS"
}

// unknownPolicy returns the policy for a request in flight at a crash.
func (n *httpRequestNode) unknownPolicy() node.UnknownPolicy {
	switch n.OnUnknown {
	case "retry":
		return node.UnknownRetry
	case "fail":
		return node.UnknownFail
	}
	return node.UnknownAsk
}

// Run makes the request as an effect and outputs the answer.
func (n *httpRequestNode) Run(ctx *node.Ctx) error {
	named, err := n.evaluate(ctx, secretPlaceholders{ctx})
	if err != nil {
		return err
	}
	req, err := named.request(ctx)
	if err != nil {
		return err
	}
	answer, err := ctx.Do(node.Effect{
		Name: "request", Request: named.identity(), Unknown: n.unknownPolicy(), ReadOnly: n.isSafeMethod(),
		Uses: node.Use{Kind: node.UseHost, Name: req.URL.Host},
		Do: func(c context.Context, key string) (node.Outcome, error) {
			return n.exchange(c, ctx, named, key)
		},
	})
	if err != nil {
		return err
	}
	if err := n.declareFile(ctx, req.URL.String(), answer); err != nil {
		return err
	}
	return outputResponse(ctx, answer)
}

// declareFile adds a recorded answer that is a file to the trajectory.
func (n *httpRequestNode) declareFile(ctx *node.Ctx, url string, answer engine.Value) error {
	a, _ := answer.(map[string]any)
	status, _ := a["status"].(int64)
	if n.Method == "HEAD" || status/100 != 2 {
		return nil
	}
	headers, _ := a["headers"].(map[string]any)
	media, _ := headers["content-type"].(string)
	disposition, _ := headers["content-disposition"].(string)
	text, _ := a["body"].(string)
	coded, _ := a["base64"].(string)
	size := len(text) + base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(coded, "=")))
	f, ok := tool.Download{URL: url, Type: media, Disposition: disposition, Size: int64(size)}.File()
	if !ok {
		return nil
	}
	return ctx.Declare(f)
}

// outputResponse sets the output ports from the recorded answer.
func outputResponse(ctx *node.Ctx, answer engine.Value) error {
	a, ok := answer.(map[string]any)
	if !ok {
		return fmt.Errorf("the recorded answer is %s, expected an object", describeValue(answer))
	}
	for _, port := range []string{"status", "headers", "body", "base64"} {
		if v, ok := a[port]; ok {
			ctx.Output(port, v)
		}
	}
	headers, _ := a["headers"].(map[string]any)
	contentType, _ := headers["content-type"].(string)
	body, _ := a["body"].(string)
	if isJSON(contentType) {
		if v, err := parseJSON(body); err == nil {
			ctx.Output("json", v)
		}
	}
	return nil
}

// recordedResponse returns an answer as the journal keeps it.
func recordedResponse(status int, headers map[string]any, body []byte, secrets *usedSecrets) engine.Value {
	a := map[string]any{"status": int64(status), "headers": headers}
	if utf8.Valid(body) {
		a["body"] = secrets.scrub(string(body))
	} else {
		a["base64"] = base64.StdEncoding.EncodeToString(body)
	}
	return a
}
