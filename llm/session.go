package llm

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/convo"
)

// recordSession notes under which name the vendor keeps the conversation. The note says
// up to which position of which view, so that it is used while the view is the
// last one plus a suffix. What marks alone do not tell of a view is not held.
func (t *turn) recordSession(resp *Response) {
	t.lane.Session = ""
	if t.req.KeepSession && resp.Session != "" && !t.lane.History.Versions() && !t.window.unrecordedCuts {
		t.lane.Session = t.sessionPrefix(t.lane.Marks, t.lane.History.Len()) + resp.Session
	}
}

func (t *turn) sessionPrefix(m convo.Marks, n int) string {
	return fmt.Sprintf("%d:%d:%d:%s/%s|", m.Cut, m.Cleared, n, t.req.Provider, t.req.Model)
}

// resumeSession has a request name the conversation that the vendor keeps, where the
// view still begins with it.
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
