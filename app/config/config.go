// Package config reads the configuration of a process: providers and the places of
// their keys, models, limits, tools, secrets.
//
// It returns plain data. It must not know how the data is used: it opens no provider,
// tool or store, and reads a key only on request.
package config

import (
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/llm"
)

// Config is what the files and the environment say together. Its fields are
// named as in the files.
type Config struct {
	// Parallel bounds how many nodes of one run are running at once; 0 is the
	// library's default.
	Parallel int `json:"parallel"`
	// Drain is how long effects in flight may take to end once SIGTERM has come; 0 is the
	// command's default.
	Drain time.Duration `json:"drain"`
	// Sync is "full", "normal" or "": when commits reach the disk.
	Sync string `json:"sync"`
	// Storage says in what form a PostgreSQL database holds contents.
	Storage Storage `json:"storage"`
	// Providers call models, by the name before the slash in "openai/gpt-5",
	// those that the environment gives included.
	Providers map[string]Provider `json:"providers"`
	// Models are laid over the built-in catalogue, the last one strongest.
	Models []llm.Model `json:"models"`
	// Limits are by "provider" or "provider/prefix".
	Limits map[string]llm.Limit `json:"limits"`
	HTTP   HTTP                 `json:"http"`
	Flows  Flows                `json:"flows"`
	Tools  Tools                `json:"tools"`
	// Executors are what may run code.
	Executors  Executors  `json:"executors"`
	Trajectory Trajectory `json:"trajectory"`
	// OTel says where traces are sent.
	OTel OTel `json:"otel"`
	// Server is for the command serve alone.
	Server Server `json:"server"`
	// Runner is who schedules runs: Temporal, or "local" or "" for the processes of Weir.
	Runner string `json:"runner"`
	// Temporal says how to reach the cluster of that runner.
	Temporal TemporalCluster `json:"temporal"`
	// Secrets are those the files name; Secret finds others too.
	Secrets map[string]Key `json:"secrets"`

	// Files are those that were read, the strongest last.
	Files []string `json:"-"`

	candidates []string
	env        func(string) (string, bool)
	// replaced are the secrets of a later reading of the files; nil in a Config that Load has not made.
	replaced *atomic.Pointer[map[string]Key]
}

// Types of provider.
const (
	OpenAI     = "openai"
	Anthropic  = "anthropic"
	Gemini     = "gemini"
	Compatible = "openai-compatible"
)

// Provider is a server of models.
type Provider struct {
	// Type is one of the constants; it is always set.
	Type    string `json:"type"`
	BaseURL string `json:"baseURL"` // empty is the vendor's own
	API     string `json:"api"`     // of OpenAI's wires: "responses", "chat" or, by host, ""
	Key     Key    `json:"key"`
	// APIKeyEnv is the short form of Key in files; it is empty once read.
	APIKeyEnv    string `json:"apiKeyEnv"`
	Organization string `json:"organization"`
	Project      string `json:"project"`
	Summary      string `json:"summary"`
	// Timeouts bound how long an answer may take; zero values are the defaults.
	Timeouts Timeouts `json:"timeouts"`
	// Breaker says when a model that fails is not called for a while; zero values are the defaults.
	Breaker Breaker `json:"breaker"`
}

// Breaker has the fields of llm.Breaker.
type Breaker struct {
	Failures int           `json:"failures"`
	Pause    time.Duration `json:"pause"`
}

// Timeouts are those of llm.Timeouts.
type Timeouts struct {
	First time.Duration `json:"first"`
	Idle  time.Duration `json:"idle"`
	Total time.Duration `json:"total"`
}

// Flows says where flow files are.
type Flows struct {
	// Folders are those from which any flow may use flow files, besides its own folder.
	Folders []string `json:"folders"`
}

// HTTP says what httpRequest and HTTP tools may reach.
type HTTP struct {
	// AllowPrivate lists what may be reached although it is not public.
	AllowPrivate []string `json:"allowPrivate"`
}

// Tools are what models may call.
type Tools struct {
	HTTP  []HTTPTool           `json:"http"`
	Flows []FlowTool           `json:"flows"`
	MCP   map[string]MCPServer `json:"mcp"`
	// Memory is long-term memory.
	Memory Memory `json:"memory"`
}

// FlowTool is a tool that runs a flow.
type FlowTool struct {
	Name        string `json:"name"`
	File        string `json:"file"`        // its path
	Description string `json:"description"` // empty is the flow's own
	Approve     string `json:"approve"`     // "always", "once", "never" or ""
	MaxOutput   int    `json:"maxOutput"`   // bytes
}

// HTTPTool is a tool that makes one HTTP request. URL, Query, Headers and Body
// are templates.
type HTTPTool struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Parameters  map[string]any    `json:"parameters"` // JSON Schema
	Method      string            `json:"method"`
	URL         string            `json:"url"`
	Query       map[string]string `json:"query"`
	Headers     map[string]string `json:"headers"`
	Body        any               `json:"body"`
	Approve     string            `json:"approve"`   // "always", "once", "never" or ""
	OnUnknown   string            `json:"onUnknown"` // "retry", "ask", "fail" or ""
	Timeout     time.Duration     `json:"timeout"`
	MaxBody     int               `json:"maxBody"`   // bytes
	MaxOutput   int               `json:"maxOutput"` // bytes
}

// MCPServer is a server of tools: Command is started, or URL is called.
type MCPServer struct {
	Command string          `json:"command"`
	Args    []string        `json:"args"`
	Env     map[string]Text `json:"env"`
	URL     string          `json:"url"`
	Headers map[string]Text `json:"headers"`
	// Tools are the ones that may be called; there is at least one.
	Tools     []string      `json:"tools"`
	Approve   string        `json:"approve"`   // "always", "once", "never" or ""
	OnUnknown string        `json:"onUnknown"` // "retry", "ask", "fail" or ""
	Timeout   time.Duration `json:"timeout"`
}

// Secret resolves secrets.NAME: by the files, else the environment variable
// WEIR_SECRET_NAME. It reports false if there is none or it cannot be read;
// Findings says why. It may be called while another goroutine replaces the secrets.
func (c *Config) Secret(name string) (string, bool) {
	secrets := c.Secrets
	if c.replaced != nil {
		if later := c.replaced.Load(); later != nil {
			secrets = *later
		}
	}
	if k, ok := secrets[name]; ok {
		v, err := k.Value()
		return v, err == nil
	}
	return c.env("WEIR_SECRET_" + name)
}
