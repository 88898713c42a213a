package postgres

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/store"
)

// headRow is a store.Head as the columns of run hold it.
type headRow struct {
	status                  string
	activity                int16
	due                     int64
	waiting, usage, failure []byte
}

func newHeadRow(h *store.Head) (row headRow, err error) {
	row = headRow{status: h.Status.String(), due: h.Due}
	if h.Status == engine.Running {
		row.activity = int16(h.Activity)
	}
	if len(h.Waiting) > 0 {
		if row.waiting, err = encodeEvent(&engine.NodeWaiting{Interrupts: h.Waiting}); err != nil {
			return row, err
		}
	}
	if row.usage, err = encodeUsage(h.Usage); err != nil {
		return row, err
	}
	if h.Error != nil {
		row.failure, err = encodeEvent(&engine.RunFailed{Error: h.Error})
	}
	return row, err
}

// encodeEvent encodes a part of a head as an event that has such a part, so that values in
// it keep their kinds.
func encodeEvent(e engine.Event) ([]byte, error) {
	return engine.EncodeEvents(nil, []engine.Event{e})
}

// encodeUsage encodes usage; none is nil.
func encodeUsage(u engine.Usage) ([]byte, error) {
	if u == (engine.Usage{}) {
		return nil, nil
	}
	return encodeEvent(&engine.EffectCompleted{Usage: &u})
}

// readUsage reads the output of encodeUsage.
func readUsage(column []byte) (engine.Usage, error) {
	var h store.Head
	err := h.AddEncoded(column)
	return h.Usage, err
}

func negateUsage(u engine.Usage) engine.Usage {
	return engine.Usage{
		Calls: -u.Calls, Input: -u.Input, Cached: -u.Cached, Output: -u.Output, Reasoning: -u.Reasoning, CostMicros: -u.CostMicros, Estimated: -u.Estimated,
	}
}

func parseStatus(s string) (engine.Status, error) {
	if st, ok := engine.StatusNamed(s); ok {
		return st, nil
	}
	return 0, fmt.Errorf("%w: status %q", store.ErrCorrupt, s)
}

// encodeValue encodes a value whole.
func encodeValue(v engine.Value) ([]byte, error) { return engine.EncodeValue(nil, v) }
