package store

import (
	"fmt"

	"github.com/weir-run/weir/engine"
)

// AddEncoded sets a part of the head from the form in which stores keep it: an event that has such a part, as
// engine.EncodeEvents writes it. Nothing encoded changes nothing. The error is ErrCorrupt if the form cannot be read.
func (h *Head) AddEncoded(part []byte) error {
	if len(part) == 0 {
		return nil
	}
	events, err := engine.DecodeEvents(part)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	for _, e := range events {
		switch v := e.(type) {
		case *engine.NodeWaiting:
			h.Waiting = v.Interrupts
		case *engine.EffectCompleted:
			if v.Usage != nil {
				h.Usage = *v.Usage
			}
		case *engine.RunFailed:
			h.Error = v.Error
		}
	}
	return nil
}
