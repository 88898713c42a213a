package config

import (
	"path/filepath"
	"time"
)

// Trajectory says where what agents did is kept as graphs, besides the journal.
type Trajectory struct {
	Files  string `json:"files"`  // a folder; empty is none
	Tables bool   `json:"tables"` // of the database
	// Portraits describe data that nothing else does.
	Portraits Portraits `json:"portraits"`
}

// Portraits have a model describe data in the background.
type Portraits struct {
	Model   string        `json:"model"`   // "provider/model"; empty is no portraits
	Timeout time.Duration `json:"timeout"` // 0 is the library's default
}

// resolveTrajectoryPath makes the folder of trajectories begin at that of the file.
func (d *document) resolveTrajectoryPath(dir string) {
	t := mapAt(d.values, "trajectory")
	if path, ok := t["files"].(string); ok && !filepath.IsAbs(path) {
		t["files"] = filepath.Join(dir, path)
	}
}
