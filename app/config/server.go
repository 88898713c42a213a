package config

import (
	"path/filepath"
	"time"
)

// Server says what the command serve keeps, and for how long.
type Server struct {
	// Audit bounds the log of who changed what.
	Audit Audit `json:"audit"`
	// Backup says where backups of the database are written, and when.
	Backup Backup `json:"backup"`
}

// Audit bounds the audit log; zero values are the defaults of the server.
type Audit struct {
	Keep    time.Duration `json:"keep"`
	Entries int           `json:"entries"`
}

// Backup says where backups of the database are written; see server.Backups.
type Backup struct {
	Folder string        `json:"folder"`
	Every  time.Duration `json:"every"`
	Keep   int           `json:"keep"`
}

// resolveBackupFolder makes the folder of backups begin at that of the file.
func (d *document) resolveBackupFolder(dir string) {
	b := mapAt(d.values, "server", "backup")
	if path, ok := b["folder"].(string); ok && !filepath.IsAbs(path) {
		b["folder"] = filepath.Join(dir, path)
	}
}
