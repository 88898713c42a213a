package gemini

import (
	"context"
	"errors"

	"github.com/weir-run/weir/llm"
)

func interacts(*llm.Request) bool { return false }

func (p *Provider) interact(context.Context, *llm.Request) error { return errors.New("x") }

type step struct{}

type interactionReader struct {
	p      *Provider
	answer *answer
	steps  map[int]*step
	keep   bool
}

func (r *interactionReader) event([]byte) (bool, error) { return false, nil }
func (r *interactionReader) whole([]byte) error         { return nil }
func (r *interactionReader) end(error) error            { return nil }
