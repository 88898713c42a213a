package flow

import "fmt"

// checkPolicy checks the keys that depend on the type. A key that a node of the type
// would ignore is refused.
func (s *scope) checkPolicy(it *nodeDraft) {
	n, sp := it.node, it.spec
	if sp == nil {
		return
	}
	if v := it.val.get("isolation"); v != nil && !sp.Composite && sp.Uses == nil {
		s.l.reportAt(v, CodeNotComposite, fmt.Sprintf("isolation is for nodes that have a body or run a flow; %s (%s) does neither", n.ID, sp.Name), "remove it")
	}
	if sp.Composite && n.Isolation != "fork" && n.Isolation != "fresh" {
		for _, key := range []string{"retry", "cache"} {
			if v := it.val.get(key); v != nil && (key == "retry" || n.Cache.On) {
				s.l.reportAt(v, CodeNeedsIsolation, fmt.Sprintf("%s on the composite %s needs a lane that is dropped as a whole", key, n.ID), "add isolation: fork, or fresh")
			}
		}
	}
	if v := it.val.get("timeout"); v != nil && n.Timeout.Idle > 0 {
		s.checkIdle(it, v)
	}
	if n.Cache.On && !sp.Pure && !sp.Composite && (sp.PureFor == nil || !sp.PureFor(n.With)) {
		s.l.reportAt(it.val.get("cache"), CodeNotPure, fmt.Sprintf("%s is of type %s, whose outputs depend on more than its settings and inputs; it cannot be cached", n.ID, sp.Name), "")
	}
	if !s.l.AlreadyValid { // what was kept may be from before these were checked
		s.checkIgnored(it)
	}
}

// checkIgnored refuses keys that say nothing on the node.
func (s *scope) checkIgnored(it *nodeDraft) {
	n := it.node
	if n.Retry.Backoff > MaxBackoff {
		s.l.reportAt(it.val.get("retry").get("backoff"), CodeBadValue, fmt.Sprintf("backoff is at most %v, which is also as far as it doubles; this is %v", MaxBackoff, n.Retry.Backoff), "")
	}
	s.checkFallback(it)
	s.checkSpend(it)
	s.checkCompletes(it)
	if n.Cache.On && n.Isolation == "fork" && s.mayWriteState(n.Body) {
		s.l.reportAt(it.val.get("cache"), CodeNotPure, fmt.Sprintf("the body of %s writes the state or a conversation, and a result that does is never kept", n.ID), "remove cache, or add isolation: fresh")
	}
}

// checkIdle refuses the time without progress where the node makes none by itself.
func (s *scope) checkIdle(it *nodeDraft, v *value) {
	why := ""
	switch sp := it.spec; {
	case sp.Composite:
		why = "repeats a body, whose nodes have times of their own"
	case sp.Uses != nil:
		why = "runs a flow, whose nodes have times of their own"
	case sp.OnlyWaits:
		why = "does nothing but wait"
	default:
		return
	}
	s.l.reportAt(v, CodeBadValue, fmt.Sprintf("timeout.idle is the time without an effect or output of the node itself, and %s (%s) %s", it.node.ID, it.spec.Name, why),
		"use timeout: DURATION, the time in all")
}

// checkFallback refuses an onError value that the node's first output port does not
// take, and one of a node that has no output port.
func (s *scope) checkFallback(it *nodeDraft) {
	n := it.node
	if !n.OnError.Handled {
		return
	}
	v := it.val.get("onError").get("value")
	if len(it.ports.Out) == 0 {
		if !it.ports.AnyOut && n.OnError.Value != nil {
			s.l.reportAt(v, CodeTypeMismatch, fmt.Sprintf("onError gives a value to the first output port, and %s (%s) has none", n.ID, it.spec.Name), "give null, or handle the failure on the port error")
		}
		return
	}
	if p := it.ports.Out[0]; n.OnError.Value != nil && !fits(n.OnError.Value, p.Type) {
		hint := ""
		if p.Type == TypeContext || p.Type == TypeTools {
			hint = "such a port has no literal value: handle the failure on the port error"
		}
		s.l.reportAt(v, CodeTypeMismatch, fmt.Sprintf("onError gives %s to the port %s of %s, which is %s", v.kind, p.Name, n.ID, p.Type), hint)
	}
}

// checkSpend refuses a budget of a node that calls no model.
func (s *scope) checkSpend(it *nodeDraft) {
	if v := it.val.get("budget"); v != nil && v.kind != kindNull && !s.mayCallModel(it.node) {
		s.l.reportAt(v, CodeNoModel, fmt.Sprintf("a budget bounds what is spent on models, and %s (%s) calls none", it.node.ID, it.spec.Name), "remove it, or set it on the flow")
	}
}

// mayCallModel reports whether a node, or what is inside it, may call a model.
func (s *scope) mayCallModel(n *Node) bool {
	sp := s.l.cat.Lookup(n.Type)
	switch {
	case sp == nil:
		return true
	case sp.Composite:
		return n.Body == nil || s.anyCallsModel(n.Body)
	case sp.Uses != nil:
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

// checkCompletes refuses what acts where a node completes, on one that never does.
func (s *scope) checkCompletes(it *nodeDraft) {
	if !it.spec.OnlyFails {
		return
	}
	for _, key := range []string{"cache", "artifacts", "interruptAfter"} {
		if v := it.val.get(key); v != nil && v.kind != kindNull {
			s.l.reportAt(v, CodeNeverCompletes, fmt.Sprintf("%s acts where a node completes, and %s (%s) always fails", key, it.node.ID, it.spec.Name), "remove it")
		}
	}
}
