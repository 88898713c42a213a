package engine

import "strings"

// IncreasedBudgetQuestions returns the ids of open questions about budgets of the run that were increased after they
// were asked, by the answer to another question or on request. Those of child runs have the form "PATH>ID".
func (r *Run) IncreasedBudgetQuestions() []string {
	if len(r.increases) == 0 {
		return nil
	}
	var out []string
	for _, o := range r.interrupts {
		switch o.Kind {
		case AwaitBudget:
			if o.increased[o.ID] != r.increases[o.Event] {
				out = append(out, o.ID)
			}
		case AwaitChild:
			if o.report == nil || o.toCancel() {
				continue
			}
			for _, i := range o.report.Interrupts {
				if own, ok := r.ownBudget(&i); ok && o.increased[i.ID] != r.increases[own] {
					out = append(out, BelowChild(o.ID, i.ID))
				}
			}
		case AwaitInput, AwaitEvent, AwaitTimer, AwaitBreak, AwaitEffect, AwaitApproval:
		}
	}
	return out
}

// ownBudget returns the path of the budget of this run that a child run's question is about.
func (r *Run) ownBudget(i *Interrupt) (path string, ok bool) {
	if i.Kind != AwaitBudget {
		return "", false
	}
	return strings.CutPrefix(i.Event, r.ID+"|")
}

// noteIncreases keeps how much had been added to the budgets that open questions are about when they were asked. A
// question that a child reports again was asked before.
func (r *Run) noteIncreases(o *openInterrupt) {
	before := o.increased
	o.increased = nil
	if o.Kind == AwaitBudget {
		setInMap(&o.increased, o.ID, r.increases[o.Event])
	}
	if o.report == nil {
		return
	}
	for i := range o.report.Interrupts {
		q := &o.report.Interrupts[i]
		own, ok := r.ownBudget(q)
		if !ok {
			continue
		}
		was, known := before[q.ID]
		if !known {
			was = r.increases[own]
		}
		setInMap(&o.increased, q.ID, was)
	}
}
