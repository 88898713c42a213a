package config

import "time"

// Server says how `weir serve` keeps what it has stored.
type Server struct {
	// Audit bounds the log of who changed what.
	Audit Audit `json:"audit"`
}

// Audit bounds the audit log; zero values are the defaults of the server.
type Audit struct {
	Keep    time.Duration `json:"keep"`
	Entries int           `json:"entries"`
}
