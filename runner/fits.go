package runner

import "github.com/weir-run/weir/engine"

// CheckState implements node.Fitter: it holds a value against the schema of its key.
func (a *attempt) CheckState(key string, v engine.Value) error {
	s := a.m.program.schemas[key]
	if s == nil {
		return nil
	}
	return s.Check(v)
}
