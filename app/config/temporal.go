package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Temporal is the value of Config.Runner for runs that a Temporal cluster schedules.
const Temporal = "temporal"

// TemporalCluster says how to reach a Temporal cluster. Empty fields have the defaults of package temporal.
type TemporalCluster struct {
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	// TaskQueue is the queue of runs, TaskQueues has those of single flows.
	TaskQueue  string            `json:"taskQueue"`
	TaskQueues map[string]string `json:"taskQueues"`
	// APIKey is sent with each request; the zero value sends none.
	APIKey Key         `json:"apiKey"`
	TLS    TemporalTLS `json:"tls"`
	// Heartbeat is how long a worker may be silent.
	Heartbeat time.Duration `json:"heartbeat"`
	// SearchAttributes sets WeirFlow, WeirStatus and WeirSession. UserKey adds WeirUser, a hash of the user with the key.
	SearchAttributes bool `json:"searchAttributes"`
	UserKey          Key  `json:"userKey"`
}

// TemporalTLS names the files of a TLS connection, and says whether there is one.
type TemporalTLS struct {
	Enabled    bool   `json:"enabled"`
	CA         string `json:"ca"` // the certificate of the server's authority
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	ServerName string `json:"serverName"`
}

// Config returns the settings of the connection, nil for one without TLS.
func (t *TemporalTLS) Config() (*tls.Config, error) {
	if *t == (TemporalTLS{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("temporal.tls.ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("temporal.tls.ca: %s has no certificate", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("temporal.tls: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// resolveTemporalPaths makes the paths of certificates begin at the folder of the file.
func (d *document) resolveTemporalPaths(dir string) {
	files := mapAt(d.values, "temporal", "tls")
	for _, name := range []string{"ca", "cert", "key"} {
		if path, ok := files[name].(string); ok && !filepath.IsAbs(path) {
			files[name] = filepath.Join(dir, path)
		}
	}
	for _, name := range []string{"apiKey", "userKey"} {
		key := mapAt(d.values, "temporal", name)
		if path, ok := key["file"].(string); ok && !filepath.IsAbs(path) {
			key["file"] = filepath.Join(dir, path)
		}
	}
}
