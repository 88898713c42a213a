package main

import (
	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app/config"
	"github.com/weir-run/weir/trajectory"
	"github.com/weir-run/weir/trajectory/files"
	"github.com/weir-run/weir/trajectory/tables"
)

// trajectories are what the configuration says of them, nil for nothing.
func trajectories(c config.Trajectory, store weir.Store) *weir.TrajectoryOptions {
	if c == (config.Trajectory{}) {
		return nil
	}
	t := &weir.TrajectoryOptions{}
	if c.Files != "" {
		t.Storage = files.New(c.Files, files.Options{})
	}
	if s, ok := store.(interface{ Trajectories() tables.Tables }); ok && c.Tables {
		rows := tables.New(s.Trajectories())
		if t.Storage == nil {
			t.Storage = rows
		} else {
			t.Storage = trajectory.Mirrored{First: rows, Second: t.Storage}
		}
	}
	if c.Portraits.Model != "" {
		t.Describer = &weir.Describer{Model: c.Portraits.Model, Timeout: c.Portraits.Timeout}
	}
	return t
}
