package main

import (
	"github.com/weir-run/weir"
	"github.com/weir-run/weir/runner"
)

type progress struct{ p *program }

func newProgress(p *program) *progress { return &progress{p} }

func (w *progress) watch(items <-chan runner.Item, last int64) (int64, error) {
	for it := range items {
		if it.Event != nil {
			last = it.Number
		}
	}
	return last, nil
}

func (w *progress) end(weir.Result) {}
