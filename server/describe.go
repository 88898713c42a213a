package server

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// registerRoutes adds every route of the server.
func (s *Server) registerRoutes() {
	s.registerFlows()
	s.registerRuns()
	s.registerRunList()
	s.registerListStream()
	s.registerAnswers()
	s.registerCommands()
	s.registerHistory()
	s.registerStream()
	s.registerLinks()
	s.registerWebhooks()
	s.registerBulk()
	s.registerDeletions()
	s.registerTriggers()
	s.registerSessions()
	s.registerSteering()
	s.registerMemory()
	s.registerModelStops()
	s.registerUsage()
	s.registerLayout()
	s.registerTimeline()
	s.registerForkPlan()
	s.registerPromptCache()
	s.registerDrawing()
	s.registerNode()
	s.registerValues()
	s.registerFiles()
	s.registerMe()
	s.registerLogin()
	s.registerUsers()
	s.registerReference()
	s.registerFilters()
	s.registerLabels()
	s.registerRatings()
	s.registerSearch()
	s.registerFlowDiff()
	s.registerFlowTests()
	s.registerPlayground()
	s.registerQuotas()
	s.registerAudit()
	s.registerUserExport()
	s.registerBackups()
	s.registerReload()
	s.registerRetention()
	if s.options.Page != nil {
		s.routes.handle("GET /{$}", Public, s.options.Page.ServeHTTP)
		s.routes.handle("GET /assets/{file}", Public, s.options.Page.ServeHTTP)
	}
	s.routes.handle("GET /healthz", Public, func(w http.ResponseWriter, _ *http.Request) { writeText(w, "ok\n") })
	s.routes.handle("GET /readyz", Public, s.serveReady)
	s.routes.handle("GET /metrics", Read, s.serveMetrics)
	s.routes.handle("GET /openapi.json", Public, s.serveDescription)
	s.routes.handle("GET /docs", Public, s.serveDocs)
	s.routes.handle("GET /docs.css", Public, serveStyle(docsStyle))
	s.routes.handle("GET /a.css", Public, serveStyle(linkStyle))
}

func serveStyle(style string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write([]byte(style)) // the client has gone if it fails
	}
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text)) // the client has gone if it fails
}

// serveReady says whether the server should get requests: it is not draining, and the store
// answers.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	if s.isDraining() {
		unavailable().write(w)
		return
	}
	if _, err := s.app.Store.FindRunIDs(r.Context(), "ready"); err != nil {
		s.logger.ErrorContext(r.Context(), "not ready", "error", err)
		p := unavailable()
		p.Detail, p.Hint = "the store does not answer", ""
		p.write(w)
		return
	}
	writeText(w, "ready\n")
}

// Description returns the OpenAPI description of the API.
func (s *Server) Description() ([]byte, error) { return json.MarshalIndent(s.api.OpenAPI(), "", "  ") }

func (s *Server) serveDescription(w http.ResponseWriter, _ *http.Request) {
	text, err := s.Description()
	if err != nil {
		problemOf(err).write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client has gone if it fails
}

const docsStyle = `body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code{background:#f3f3f3;padding:.1em .3em}table{border-collapse:collapse}td,th{text-align:left;padding:.2em .8em .2em 0;vertical-align:top}
section{border-top:1px solid #ccc;padding-top:.5rem}`

// serveDocs writes a page that lists the operations. It loads nothing from elsewhere.
func (s *Server) serveDocs(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	b.WriteString("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Weir API</title><link rel=\"stylesheet\" href=\"docs.css\"><h1>Weir API</h1>")
	b.WriteString("<p>The whole description, with the schemas of requests and answers, is <a href=\"openapi.json\">openapi.json</a> (OpenAPI 3.1).</p>")
	api := s.api.OpenAPI()
	paths := make([]string, 0, len(api.Paths))
	for path := range api.Paths {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		item := api.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op != nil {
				writeOperation(&b, op)
			}
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(b.String())) // the client has gone if it fails
}

func writeOperation(b *strings.Builder, op *huma.Operation) {
	text := html.EscapeString
	fmt.Fprintf(b, "<section id=\"%s\"><h2>%s</h2><p><code>%s %s</code></p><p>%s</p>", text(op.OperationID), text(op.Summary), op.Method, text(op.Path), text(op.Description))
	for _, need := range op.Security {
		fmt.Fprintf(b, "<p>Scope: <code>%s</code></p>", text(strings.Join(need["token"], ", ")))
	}
	if len(op.Parameters) > 0 {
		b.WriteString("<table><tr><th>parameter<th>in<th>meaning</tr>")
		for _, p := range op.Parameters {
			fmt.Fprintf(b, "<tr><td><code>%s</code><td>%s<td>%s</tr>", text(p.Name), p.In, text(p.Description))
		}
		b.WriteString("</table>")
	}
	b.WriteString("</section>")
}
