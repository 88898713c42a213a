package childrun

import (
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine"
)

// AnswerTo returns what a parent answers to a child that asks to attach with a report, and
// the budgets that bind the child where the answer is Accepted.
func AnswerTo(parent *engine.Run, report *engine.ChildReported) (Answer, Budgets) {
	if parent.Status().Ended() {
		return ParentEnded, Budgets{}
	}
	c, ok := parent.OpenChild(report.ID)
	switch {
	case !ok:
		return NotAwaited, Budgets{}
	case !sameReport(c.Report, report):
		return ReportFirst, Budgets{}
	}
	return Accepted, Budgets{Node: c.Node, Accounts: parent.Accounts(c.Node)}
}

// Budgets are the budgets of a node that bind the child it runs.
type Budgets struct {
	Node     string
	Accounts []engine.Account
}

// Applies reports whether a parent applies a report: a node waits for the child, or failed
// because of it and can continue, and the report is news.
func Applies(parent *engine.Run, report *engine.ChildReported) bool {
	if !parent.AwaitsChild(report.ID) || parent.Status() == engine.Failed && !report.Reopens() {
		return false
	}
	c, open := parent.OpenChild(report.ID)
	return !open || c.Start.Run == report.Run && !sameReport(c.Report, report)
}

// sameReport reports whether a report has nothing that the known one lacks. Before the
// first report a child is running and has spent nothing.
func sameReport(known, report *engine.ChildReported) bool {
	if known == nil {
		known = &engine.ChildReported{Status: engine.Running}
	}
	return known.Status == report.Status && known.Usage == report.Usage &&
		SameInterrupts(known.Interrupts, report.Interrupts) && reflect.DeepEqual(known.Increases, report.Increases)
}

// AsksBelow reports whether a child of the run asks some of what the run waits for, so
// that the run's row does not say whether it is still asked.
func AsksBelow(waiting []engine.Interrupt) bool {
	return slices.ContainsFunc(waiting, func(i engine.Interrupt) bool { return strings.Contains(i.ID, ">") })
}
