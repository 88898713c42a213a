package config_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/app/config"
)

func TestTrajectoryFolderIsRelativeToFile(t *testing.T) {
	p := newFixture(t)
	p.user("trajectory: {files: mine, tables: true}\n")
	p.project("trajectory: {files: graphs, portraits: {model: openai/gpt-5-mini, timeout: 90s}}\n")
	got := p.load().Trajectory
	want := config.Trajectory{
		Files: filepath.Join(p.o.Dir, "graphs"), Tables: true,
		Portraits: config.Portraits{Model: "openai/gpt-5-mini", Timeout: 90 * time.Second},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
