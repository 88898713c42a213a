package app

import (
	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/runner"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/tables"
)

// trajectories returns the options of the trajectory recorder, nil if nothing is
// configured.
func trajectories(c config.Trajectory, store weir.Store) *weir.TrajectoryOptions {
	if c == (config.Trajectory{}) {
		return nil
	}
	t := &weir.TrajectoryOptions{}
	if c.Files != "" {
		t.Storage = files.New(c.Files, files.Options{})
	}
	if in := store.Capabilities().Trajectories; in != nil && c.Tables {
		rows := tables.New(in)
		if t.Storage == nil {
			t.Storage = rows
		} else {
			t.Storage = trajectory.Mirrored{First: rows, Second: t.Storage}
		}
	}
	if c.Portraits.Model != "" {
		t.Describer = &runner.DescriptionOptions{Model: c.Portraits.Model, Timeout: c.Portraits.Timeout}
	}
	return t
}
