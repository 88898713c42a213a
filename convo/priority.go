package convo

import (
	"cmp"
	"slices"
)

// DefaultPriority is the priority of a message that has none.
const DefaultPriority = 50

// priority returns the highest priority of the messages of a group.
func (g *group) priority() int {
	highest := 0
	for _, m := range g.source {
		highest = max(highest, cmp.Or(m.Priority, DefaultPriority))
	}
	return highest
}

// hasPriorities reports whether a cut must compare priorities: a group that it may omit has
// another than the default, or an earlier cut by priority left groups before the cut.
func (s *selection) hasPriorities() bool {
	earlier := 0
	for _, g := range s.head {
		if g.at < 0 || s.isKept(g) {
			continue
		}
		if earlier++; earlier > 1 || g.source[0].Role != User || g.priority() != DefaultPriority {
			return true
		}
	}
	return slices.ContainsFunc(s.groups[:max(len(s.groups)-1, 0)], func(g *group) bool {
		return !s.isKept(g) && g.priority() != DefaultPriority
	})
}

// cutByPriority omits groups until at most low tokens are shown: those with the lowest
// priority first, and among equal ones the oldest. Groups that stay before the cut become
// pins of this view, and the next cut considers them again.
func (s *selection) cutByPriority(low int) (*Need, error) {
	omitted, n := s.lowestGroups(low)
	if len(omitted) == 0 {
		return nil, nil
	}
	moved := s.marks
	if n > 0 {
		moved.Cut = s.groups[n].at
	}
	moved.Pins = nil
	for _, g := range append(slices.Clone(s.head), s.groups[:n]...) {
		if g.at >= 0 && (s.isKept(g) || len(g.out) > 0) && !slices.Contains(omitted, g) {
			moved.Pins = append(moved.Pins, g.pos...)
		}
	}
	slices.Sort(moved.Pins)
	need := s.summaryNeed(moved.Cut, omitted)
	s.reasons = append(s.reasons, "messages were omitted by priority")
	return need, s.reselect(moved)
}

// lowestGroups returns the groups to omit, in the order of their positions, and the number
// of groups after the cut of which the last is omitted.
func (s *selection) lowestGroups(low int) (omitted []*group, n int) {
	var candidates []*group
	last := len(s.groups) - 1
	for _, g := range append(slices.Clone(s.head), s.groups[:max(last, 0)]...) {
		if g.at >= 0 && !s.isKept(g) && len(g.out) > 0 {
			candidates = append(candidates, g)
		}
	}
	slices.SortFunc(candidates, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.priority(), b.priority()), cmp.Compare(a.at, b.at))
	})
	left := s.tokens
	for _, g := range candidates {
		if left <= low {
			break
		}
		left -= g.tokens
		omitted = append(omitted, g)
	}
	slices.SortFunc(omitted, func(a, b *group) int { return cmp.Compare(a.at, b.at) })
	if len(omitted) > 0 {
		n = slices.Index(s.groups, omitted[len(omitted)-1]) + 1
	}
	return omitted, n
}
