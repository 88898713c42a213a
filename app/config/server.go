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
	// Folders are those whose files may start runs, by name.
	Folders map[string]Folder `json:"folders"`
	// OIDC says who signs people in; see server.OIDC.
	OIDC OIDC `json:"oidc"`
}

// OIDC says which OpenID Connect issuer signs people in, and what they may do; without an issuer nobody signs in.
type OIDC struct {
	Issuer          string            `json:"issuer"`
	ClientID        string            `json:"clientID"`
	ClientSecret    Key               `json:"clientSecret"`
	Scopes          []string          `json:"scopes"` // nil is the default of the server
	User            string            `json:"user"`
	UnverifiedEmail bool              `json:"unverifiedEmail"`
	Groups          string            `json:"groups"`
	Roles           map[string]string `json:"roles"` // by group: owner, operator or viewer
	Role            string            `json:"role"`
	Session         time.Duration     `json:"session"`
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

// Folder is a folder whose files may start runs; see server.Folder.
type Folder struct {
	Path  string   `json:"path"`
	Users []string `json:"users"`
}

// resolveServerFolders makes the folders of backups and of triggers begin at that of the file.
func (d *document) resolveServerFolders(dir string) {
	resolve := func(in map[string]any, key string) {
		if path, ok := in[key].(string); ok && !filepath.IsAbs(path) {
			in[key] = filepath.Join(dir, path)
		}
	}
	resolve(mapAt(d.values, "server", "backup"), "folder")
	for _, f := range mapAt(d.values, "server", "folders") {
		m, _ := f.(map[string]any)
		resolve(m, "path")
	}
}
