package server

import (
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/engine"
)

// linkStyle and the pages of links fit a phone, and need no script.
const linkStyle = `body{font:18px/1.5 system-ui,sans-serif;max-width:34rem;margin:1.5rem auto;padding:0 1rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}
textarea,input{font:inherit;width:100%;box-sizing:border-box;padding:.5rem}
button{font:inherit;display:block;width:100%;margin:.6rem 0;padding:.8rem}
.problem{border-left:.3rem solid #b00;padding-left:.6rem}`

// linkPolicy lets the page of a link use its style and send its form, and nothing else.
const linkPolicy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// page is a page of a link: HTML of a title and a body.
type page struct{ title, body string }

func writePage(w http.ResponseWriter, status int, p page) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", linkPolicy)
	// The address of the page is a secret, so other pages get its origin at most. The browser
	// sends an Origin with the form only under such a policy.
	h.Set("Referrer-Policy", "strict-origin")
	h.Set("X-Robots-Tag", "noindex")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`+
		`<title>%s</title><link rel="stylesheet" href="../a.css"></head><body><h1>%[1]s</h1>%s</body></html>`, html.EscapeString(p.title), p.body) // the client has gone if it fails
}

func messagePage(title, text string) page {
	return page{title, "<p>" + html.EscapeString(text) + "</p>"}
}

// questionPage shows a question with a form. Problem says why an answer was not taken.
func questionPage(i engine.Interrupt, problem string) page {
	var b strings.Builder
	if problem != "" {
		fmt.Fprintf(&b, `<p class="problem">%s</p>`, html.EscapeString(problem))
	}
	fmt.Fprintf(&b, "<pre>%s</pre><form method=\"post\">", html.EscapeString(i.Prompt))
	for _, choice := range choicesOf(i) {
		fmt.Fprintf(&b, `<button name="value" value="%s">%[1]s</button>`, html.EscapeString(choice))
	}
	switch {
	case i.Kind == engine.AwaitApproval:
		b.WriteString(`<label>Reason, if you reject<input name="reason" maxlength="2000"></label>`)
	case choicesOf(i) == nil:
		b.WriteString(`<label>Your answer<textarea name="value" rows="5" required></textarea></label><button>Send</button>`)
	}
	b.WriteString("</form>")
	return page{"A question for you", b.String()}
}

// choicesOf returns the answers among which a person chooses, nil for a free text.
func choicesOf(i engine.Interrupt) (out []string) {
	if i.Kind == engine.AwaitApproval {
		return []string{app.ApproveAnswer, app.RejectAnswer}
	}
	if i.Schema["type"] == "boolean" {
		return []string{"true", "false"}
	}
	list, _ := i.Schema["enum"].([]any)
	for _, v := range list {
		text, ok := v.(string)
		if !ok || len(list) > 20 {
			return nil
		}
		out = append(out, text)
	}
	return out
}
