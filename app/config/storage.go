package config

import "path/filepath"

// Storage says in what form a PostgreSQL database holds contents; the zero value is as they are. Contents in another
// form stay readable.
type Storage struct {
	// Compress has contents compressed where that saves space.
	Compress bool `json:"compress"`
	// Encryption has contents encrypted.
	Encryption Encryption `json:"encryption"`
}

// Encryption says where master keys are: 32 bytes in base64 or hexadecimal digits.
type Encryption struct {
	// Key wraps the data keys of users. If it is not set, new contents are not encrypted.
	Key Key `json:"key"`
	// Previous are keys for reading only: those that Key replaces or will replace.
	Previous []Key `json:"previous"`
}

// IsZero reports whether nothing is set.
func (s *Storage) IsZero() bool { return !s.Compress && s.Encryption.IsZero() }

// IsZero reports whether no key is set.
func (e *Encryption) IsZero() bool { return !e.Key.Set() && len(e.Previous) == 0 }

// setStorageEnv has the keys read the environment of the configuration.
func (c *Config) setStorageEnv() {
	e := &c.Storage.Encryption
	e.Key.getenv = c.env
	for i := range e.Previous {
		e.Previous[i].getenv = c.env
	}
}

// resolveStoragePaths makes the paths of key files begin at the folder of the file.
func (d *document) resolveStoragePaths(dir string) {
	fix := func(x any) {
		key, _ := x.(map[string]any)
		if path, ok := key["file"].(string); ok && !filepath.IsAbs(path) {
			key["file"] = filepath.Join(dir, path)
		}
	}
	e := mapAt(d.values, "storage", "encryption")
	fix(e["key"])
	previous, _ := e["previous"].([]any)
	for _, x := range previous {
		fix(x)
	}
}
