package runner

import (
	"context"

	"github.com/weir-run/weir/engine"
)

// Calls that wait for one budget each ask a question. An increase, given by any person or process, settles all of them: the calls try
// to reserve again, and those that still do not fit ask anew.

// settledByIncrease is the answer to a question about a budget that was increased otherwise: it adds nothing.
func settledByIncrease(id string) *engine.InterruptAnswered {
	return &engine.InterruptAnswered{ID: id, Value: map[string]any{}}
}

// increases reports whether an event may increase a budget.
func increases(e engine.Event) bool {
	switch e := e.(type) {
	case *engine.InterruptAnswered:
		given, ok := e.Value.(map[string]any)
		return ok && engine.ParseBudgetIncrease(given) != engine.Usage{}
	case *engine.ChildReported:
		return len(e.Increases) > 0
	case *engine.NodeOverridden:
		return e.Increase != nil
	}
	return false
}

// settleBudgetQuestions settles the run's own questions about budgets that staged events have increased.
func (m *machine) settleBudgetQuestions(at int64, applied []engine.Event) error {
	for _, e := range applied {
		if !increases(e) {
			continue
		}
		m.checkChildren = true
		m.ledger.raise(m.run)
		for _, id := range m.run.IncreasedBudgetQuestions() {
			if _, _, below := m.run.ChildInterrupt(id); below || m.program.recorded {
				continue
			}
			if _, _, open := m.run.Interrupt(id); !open { // settled with an earlier one
				continue
			}
			if err := m.step(at, settledByIncrease(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleLateQuestions settles questions of an attempt about budgets that were increased after the attempt had found
// them too small, and before it asked.
func (m *machine) settleLateQuestions(at int64, a *attempt) error {
	for _, i := range a.interrupts {
		was, ok := a.tooSmall[i.ID]
		if _, _, open := m.run.Interrupt(i.ID); !ok || !open || m.ledger.limit(a.accounts, i.Event) == was {
			continue
		}
		if err := m.step(at, settledByIncrease(i.ID)); err != nil {
			return err
		}
	}
	return nil
}

// limit returns the limit of the budget that a question of a call is about.
func (p *budgetLedger) limit(paths []string, budget string) engine.Usage {
	first := p.chain(paths)
	defer first.lockAll()()
	for l := first; l != nil; l = l.parent() {
		for _, path := range l.paths {
			if l.accountName(path) == budget {
				return l.ledger.accounts[path].Max
			}
		}
	}
	return engine.Usage{}
}

// raise sets the limits of the known budgets of the run to those of the journal.
func (p *budgetLedger) raise(r *engine.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, known := range p.accounts {
		of := path
		if isRunBudget(path) {
			of = ""
		}
		for _, a := range r.Accounts(of) {
			if a.Path == path {
				known.Max = a.Max
			}
		}
	}
	p.wakeWaiters()
}

// settleQuestionsOfChildren settles questions of child runs about budgets of this run that were increased. What it
// acts on is durable.
func (x *Execution) settleQuestionsOfChildren() {
	for _, id := range x.m.run.IncreasedBudgetQuestions() {
		c, inner, below := x.m.run.ChildInterrupt(id)
		if !below || x.settled[id] || x.m.program.recorded {
			continue
		}
		if x.settled == nil {
			x.settled = make(map[string]bool)
		}
		x.settled[id] = true
		x.settling++
		x.local.loops.Go(func() {
			x.settleQuestionOfChild(&c, inner)
			x.command(func(*engine.Run) (engine.Event, error) {
				x.settling--
				return nil, nil
			})
		})
	}
}

// settleQuestionOfChild settles a question in a child run. If the child cannot be executed here, the question stays.
func (x *Execution) settleQuestionOfChild(c *engine.OpenChild, id string) {
	ctx, stop := context.WithCancel(x.local.ctx)
	defer stop()
	err := x.retryWhileOwned(ctx, func() error {
		p, err := x.local.programOf(ctx, c.Start.Fingerprint)
		if err != nil {
			return err
		}
		y, err := x.local.Do(ctx, p, c.Start.Run, settleBudgetQuestion(id))
		if err != nil {
			return err
		}
		select {
		case <-y.parentLink.whenReady(): // it has reported that it continues
		case <-x.done:
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		x.local.o.Logger.Warn("a question about an increased budget stays open", "run", c.Start.Run, "error", err)
	}
}

// settleBudgetQuestion returns the command that settles a question about a budget, if it is still open.
func settleBudgetQuestion(id string) Command {
	return func(r *engine.Run) (engine.Event, error) {
		if c, inner, ok := r.ChildInterrupt(id); ok {
			return nil, &childCommand{c.Start, settleBudgetQuestion(inner)}
		}
		if i, _, ok := r.Interrupt(id); !ok || i.Kind != engine.AwaitBudget {
			return nil, nil
		}
		return settledByIncrease(id), nil
	}
}
