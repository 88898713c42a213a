package llm

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/engine"
)

// HistoryKeeper is implemented by providers that know whether the vendor can store
// conversations for them. Others may.
type HistoryKeeper interface {
	Provider
	// KeepsHistory reports whether Request.KeepSession has an effect.
	KeepsHistory() bool
}

// checkHistory refuses `history: server` where no model that the turn may ask is of a vendor
// that stores conversations. A context may ask for it on behalf of its own model; nodes that
// choose another model in the same context are not refused.
func (t *turn) checkHistory() error {
	inherited := t.History == ""
	if !t.req.KeepSession || inherited && (t.Model != "" || t.Provider != "" || t.Fallback != nil) {
		return nil
	}
	for _, c := range t.candidates {
		if k, ok := c.provider.(HistoryKeeper); !ok || k.KeepsHistory() {
			return nil
		}
	}
	of := "the node"
	if inherited {
		of = "the context"
	}
	return &Error{
		Code:    engine.CodeModelRequest,
		Message: fmt.Sprintf("%s asks for history: server, and the provider %s stores no conversations; remove it, or choose another model", of, t.req.Provider),
	}
}

// recordSession records the id of the conversation at the vendor, with the view and
// position up to which it goes, so that it is used while the view is the last one plus a
// suffix. A view that its marks do not fully describe is not recorded.
func (t *turn) recordSession(resp *Response) {
	if t.current > 0 { // the first model's conversation lacks this answer, which is sent with the next call
		return
	}
	t.lane.Session = ""
	if t.req.KeepSession && resp.Session != "" && !t.lane.History.Versions() && !t.window.unrecordedCuts {
		t.lane.Session = t.sessionPrefix(t.lane.Marks, t.lane.History.Len()) + resp.Session
	}
}

func (t *turn) sessionPrefix(m convo.Marks, n int) string {
	return fmt.Sprintf("%d:%d:%d:%s/%s|", m.Cut, m.Cleared, n, t.req.Provider, t.req.Model)
}

// resumeSession makes a request refer to the conversation at the vendor if the view still
// begins with it.
func (t *turn) resumeSession(req *Request, v convo.View) {
	var cut, cleared, n int
	if !req.KeepSession || v.Manifest.Reason != "" || v.Manifest.Shortened > 0 || t.lane.History.Versions() {
		return
	}
	if _, err := fmt.Sscanf(t.lane.Session, "%d:%d:%d:", &cut, &cleared, &n); err != nil {
		return
	}
	id, ok := strings.CutPrefix(t.lane.Session, t.sessionPrefix(v.Marks, n))
	if since := v.Since(n); ok && since > 0 {
		req.Session, req.HeldMessages = id, len(v.Messages)-since
	}
}
