package llm

import (
	"context"
	"fmt"
	"time"
)

// Stop says that a person has stopped models: calls of them wait.
type Stop struct {
	// Models is "*" for all, a "provider", or how "provider/model" begins.
	Models string `json:"models"`
	// By is the person, and Reason what the person said about it.
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// String says who stopped what, and why.
func (s *Stop) String() string {
	text := "all models are stopped"
	if s.Models != "*" {
		text = "models of " + s.Models + " are stopped"
	}
	if s.By != "" {
		text += " by " + s.By
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// stopPoll is the time between two looks at whether a model is still stopped.
const stopPoll = 500 * time.Millisecond

// waitWhileStopped returns once the model is not stopped.
func (s *Service) waitWhileStopped(ctx context.Context, req *Request, emit func(Chunk)) error {
	reported := ""
	for {
		stop, err := s.stopped(ctx, req.Provider, req.Model)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("whether %s/%s is stopped: %w", req.Provider, req.Model, err)
		case stop == nil:
			return nil
		}
		if text := stop.String(); text != reported {
			reported = text
			s.log.WarnContext(ctx, "model call waits", "provider", req.Provider, "model", req.Model, "stop", text)
			emit(Chunk{Wait: stopPoll, WaitReason: WaitStopped, WaitDetail: text})
		}
		if err := sleep(ctx, stopPoll); err != nil {
			return err
		}
	}
}
