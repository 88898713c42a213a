package flow

import (
	"fmt"
	"slices"
)

// checkPolicy checks the keys that depend on the type. It refuses a key that a node of the
// type would ignore.
func (s *scope) checkPolicy(it *nodeDraft) {
	n, sp := it.node, it.spec
	if sp == nil {
		return
	}
	if v := it.val.get("isolation"); v != nil && !sp.Composite && sp.Uses == nil {
		s.l.reportAt(v, CodeNotComposite, fmt.Sprintf("isolation requires a node with a body or one that runs a flow; %s (%s) is neither", n.ID, sp.Name), "remove it")
	}
	if v := it.val.get("isolation"); v != nil && sp.NeedsLanes(n.With) && n.Isolation == "share" {
		s.l.reportAt(v, CodeBadValue, sharedLanes(sp, n.ID), "use isolation: fork, which is the default, or fresh")
	}
	if sp.Composite && !sp.NeedsLanes(n.With) && n.Isolation != "fork" && n.Isolation != "fresh" {
		for _, key := range []string{"retry", "cache"} {
			if v := it.val.get(key); v != nil && (key == "retry" || n.Cache.On) {
				s.l.reportAt(v, CodeNeedsIsolation, fmt.Sprintf("%s on the composite %s requires a lane that can be discarded as a whole", key, n.ID), "add isolation: fork, or fresh")
			}
		}
	}
	if v := it.val.get("timeout"); v != nil && n.Timeout.Idle > 0 {
		s.checkIdle(it, v)
	}
	if n.Cache.On && !sp.Pure && !sp.Composite && (sp.PureFor == nil || !sp.PureFor(n.With)) {
		s.l.reportAt(it.val.get("cache"), CodeNotPure, fmt.Sprintf("%s has type %s, whose outputs depend on more than its settings and inputs; it cannot be cached", n.ID, sp.Name), "")
	}
	if !s.l.AlreadyValid { // a stored flow may predate these checks
		s.checkIgnored(it)
	}
}

// sharedLanes says why the iterations of a node cannot share one lane.
func sharedLanes(sp *TypeSpec, id string) string {
	if sp.Branches {
		return fmt.Sprintf("the branches of %s run at the same time, each in a lane of its own; they cannot share one", id)
	}
	return fmt.Sprintf("each iteration of %s may fail alone, so it needs a lane of its own, which is then discarded", id)
}

// checkIgnored refuses keys that have no effect on the node.
func (s *scope) checkIgnored(it *nodeDraft) {
	n := it.node
	if n.Retry.Attempts == 1 && (n.Retry.Backoff > 0 || len(n.Retry.On) > 0) {
		s.l.reportAt(it.val.get("retry").get("attempts"), CodeBadValue, "attempts counts the first attempt: with 1 nothing is repeated, and backoff and on have no effect", "set attempts to 2 or more, or remove retry")
	}
	if total := n.Timeout.Total; total > 0 && n.Timeout.Idle >= total {
		s.l.reportAt(it.val.get("timeout").get("idle"), CodeBadValue, fmt.Sprintf("timeout.idle never passes, as timeout.total is not longer: %v", total), "set idle to less than total")
	}
	if n.Retry.Backoff > MaxBackoff {
		s.l.reportAt(it.val.get("retry").get("backoff"), CodeBadValue, fmt.Sprintf("backoff must be at most %v, the longest wait between attempts; got %v", MaxBackoff, n.Retry.Backoff), "")
	}
	s.checkRetryCodes(it)
	s.checkFallback(it)
	s.checkBranchEffects(it)
	s.checkSpend(it)
	s.checkCompletes(it)
	if n.Cache.On && (n.Isolation == "fork" || it.spec.NeedsLanes(n.With) && n.Isolation == "") && s.mayWriteState(n.Body) {
		s.l.reportAt(it.val.get("cache"), CodeNotPure, fmt.Sprintf("the body of %s writes the state or a conversation, so its result cannot be cached", n.ID), "remove cache, or add isolation: fresh")
	}
}

// checkIdle refuses an idle timeout if the node itself makes no progress.
func (s *scope) checkIdle(it *nodeDraft, v *value) {
	why := ""
	switch sp := it.spec; {
	case sp.Composite:
		why = "repeats a body, whose nodes have their own timeouts"
	case sp.Uses != nil:
		why = "runs a flow, whose nodes have their own timeouts"
	case sp.OnlyWaits:
		why = "only waits"
	default:
		return
	}
	s.l.reportAt(v, CodeBadValue, fmt.Sprintf("timeout.idle is the time without an effect or output of the node itself, and %s (%s) %s", it.node.ID, it.spec.Name, why),
		"use timeout: DURATION, the total time")
}

// checkFallback refuses an onError value that does not fit the node's first output port, or
// if there is no such port.
func (s *scope) checkFallback(it *nodeDraft) {
	n := it.node
	if !n.OnError.Handled {
		return
	}
	v := it.val.get("onError").get("value")
	if len(it.ports.Out) == 0 {
		if !it.ports.AnyOut && n.OnError.Value != nil {
			s.l.reportAt(v, CodeTypeMismatch, fmt.Sprintf("onError gives a value to the first output port, and %s (%s) has none", n.ID, it.spec.Name), "use null, or handle the failure on the port error")
		}
		return
	}
	if p := it.ports.Out[0]; n.OnError.Value != nil && !isOf(n.OnError.Value, p.Type) {
		hint := ""
		switch {
		case p.Type == TypeContext || p.Type == TypeTools:
			hint = "such a port has no literal value: handle the failure on the port error"
		case p.Type == TypeText && fits(n.OnError.Value, p.Type):
			hint = "quote it, to give a text"
		case p.Type == TypeMessage && fits(n.OnError.Value, p.Type):
			hint = "give {role: assistant, text: ...}"
		}
		s.l.reportAt(v, CodeTypeMismatch, fmt.Sprintf("onError gives %s to the port %s of %s, which is %s", v.kind, p.Name, n.ID, p.Type), hint)
	}
}

// checkSpend refuses a budget of a node that calls no model.
func (s *scope) checkSpend(it *nodeDraft) {
	if v := it.val.get("budget"); v != nil && v.kind != kindNull && !s.mayCallModel(it.node) {
		s.l.reportAt(v, CodeNoModel, fmt.Sprintf("a budget limits the spending on models, and %s (%s) calls none", it.node.ID, it.spec.Name), "remove it, or set it on the flow")
	}
}

// mayCallModel reports whether a node, or a node inside it, may call a model.
func (s *scope) mayCallModel(n *Node) bool {
	sp := s.l.cat.Lookup(n.Type)
	switch {
	case sp == nil:
		return true
	case sp.Composite:
		return n.Body == nil || s.anyCallsModel(n.Body)
	case sp.Uses != nil:
		if sp.choosesFlow(n) {
			return slices.ContainsFunc(n.Runs, func(f *Flow) bool { return f == s.l.flow || s.anyCallsModel(&f.Graph) })
		}
		return n.Uses == nil || n.Uses == s.l.flow || s.anyCallsModel(&n.Uses.Graph)
	case sp.AsksModels == nil:
		return true
	}
	return sp.AsksModels(n.With)
}

func (s *scope) anyCallsModel(g *Graph) bool {
	for _, n := range g.Nodes {
		if n.With["flow"] == Self || s.mayCallModel(n) {
			return true
		}
	}
	return false
}

// mayWriteState reports whether a body is known to write the state or a conversation.
func (s *scope) mayWriteState(g *Graph) bool {
	if g == nil {
		return false
	}
	for _, n := range g.Nodes {
		sp := s.l.cat.Lookup(n.Type)
		if sp == nil {
			continue
		}
		if sp.ContextOf(n) == ContextWrite || sp.Writes != nil && len(sp.Writes(n.With)) > 0 || s.mayWriteState(n.Body) {
			return true
		}
	}
	return false
}

// checkCompletes refuses keys that act on completion, on a node that never completes.
func (s *scope) checkCompletes(it *nodeDraft) {
	if !it.spec.OnlyFails {
		return
	}
	for _, key := range []string{"cache", "artifacts", "interruptAfter"} {
		if v := it.val.get(key); v != nil && v.kind != kindNull {
			s.l.reportAt(v, CodeNeverCompletes, fmt.Sprintf("%s acts when a node completes, and %s (%s) always fails", key, it.node.ID, it.spec.Name), "remove it")
		}
	}
}
