// Package mcptool creates tools from those of MCP servers, over stdio or streamable
// HTTP. It uses the official SDK; no type of the SDK leaves this package.
//
// Servers are not trusted: only listed tools are offered, only with their accepted
// definition, and results are text. It must not know flows or nodes.
package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/weir-run/weir/tool"
)

// The default limits of a server.
const (
	DefaultTimeout        = time.Minute      // for one call
	DefaultConnectTimeout = 30 * time.Second // to start and to list its tools
	DefaultParallel       = 4                // calls at once
)

// Server is the configuration of one MCP server.
type Server struct {
	// Name is 1 to 32 letters, digits or -; flows say "mcp:NAME/tool".
	Name string
	// Command starts the server, which communicates over its standard input and output: a
	// program and its arguments. Either Command or URL is set.
	Command []string
	// Dir is its working directory; "" means that of this process.
	Dir string
	// PassEnv lists environment variables that it inherits from this process, besides PATH,
	// HOME, LANG and TMPDIR. It inherits no others.
	PassEnv []string
	// Env are further variables; {{ secrets.NAME }} is replaced.
	Env map[string]string
	// URL is the address of a streamable HTTP server.
	URL string
	// Headers are sent only to the origin of URL; {{ secrets.NAME }} is replaced.
	Headers map[string]string

	// Tools lists the offered tools, by the server's names; "*" means all. Without it there
	// are none.
	Tools []string
	// Approve is the approval policy by tool; "*" applies to tools that it does not name.
	Approve map[string]tool.Approval
	// OnUnknown is the policy of all tools for unknown outcomes; see tool.Tool.
	OnUnknown tool.OnUnknown
	// TrustReadOnly trusts the server's readOnlyHint. Otherwise no tool is read-only, and a
	// call with an unknown outcome is not repeated.
	TrustReadOnly bool

	// Timeout limits one call, including the wait for a slot; 0 means DefaultTimeout.
	Timeout time.Duration
	// ConnectTimeout limits starting and listing; 0 means DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// MaxOutput limits a stored result in bytes; see tool.Tool.
	MaxOutput int
	// Parallel limits the concurrent calls; 0 means DefaultParallel.
	Parallel int
}

// check reports an invalid configuration.
func (s *Server) check() error {
	if !tool.ValidName(s.Name) || len(s.Name) > 32 || strings.Contains(s.Name, "_") {
		return fmt.Errorf("mcp server %q: a name is 1 to 32 letters, digits or -", s.Name)
	}
	if (len(s.Command) == 0) == (s.URL == "") {
		return fmt.Errorf("mcp server %s: give either a command or a URL", s.Name)
	}
	if s.URL == "" {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return fmt.Errorf("mcp server %s: its URL does not begin with http:// or https:// and a host, or holds a user name", s.Name)
	}
	return nil
}

// approval returns the policy of one tool.
func (s *Server) approval(name string) tool.Approval {
	if a, ok := s.Approve[name]; ok {
		return a
	}
	return s.Approve["*"]
}

// FlowName returns a tool's name in flows: "mcp:server/tool".
func FlowName(server, name string) string { return "mcp:" + server + "/" + name }

// ModelName returns a tool's name for models: mcp__server__tool, always the same. If that
// is longer than 64 bytes, or the server's name has characters that models cannot use, it
// is shortened and sanitised and ends in a digest of the whole.
func ModelName(server, name string) string {
	fullName := "mcp__" + server + "__" + name
	if tool.ValidName(fullName) {
		return fullName
	}
	sum := sha256.Sum256([]byte(fullName))
	clean := strings.Map(func(r rune) rune {
		if tool.ValidName(string(r)) {
			return r
		}
		return '_'
	}, fullName)
	return clean[:min(len(clean), 55)] + "_" + hex.EncodeToString(sum[:4])
}
