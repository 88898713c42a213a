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

// The limits of a server that names none.
const (
	DefaultTimeout        = time.Minute      // for one call
	DefaultConnectTimeout = 30 * time.Second // to start and to list its tools
	DefaultParallel       = 4                // calls at once
)

// Server is what a configuration says about one MCP server.
type Server struct {
	// Name is 1 to 32 letters, digits or -; flows say "mcp:NAME/tool".
	Name string
	// Command starts the server, which then speaks over its standard input and
	// output: a program and its arguments. Either Command or URL is set.
	Command []string
	// Dir is where it is started; "" is the directory of this process.
	Dir string
	// PassEnv lists the environment variables it is given from this process,
	// beside PATH, HOME, LANG and TMPDIR. It gets no others.
	PassEnv []string
	// Env are further variables; {{ secrets.NAME }} is replaced.
	Env map[string]string
	// URL is a server of streamable HTTP.
	URL string
	// Headers are sent to URL, and to no other origin; {{ secrets.NAME }} is
	// replaced.
	Headers map[string]string

	// Tools lists the tools that are offered, by the server's names; "*" is
	// all of them. Without it there are none.
	Tools []string
	// Approve is the policy by tool; "*" is for those that it does not name.
	Approve map[string]tool.Approval
	// TrustReadOnly believes the server's readOnlyHint. Otherwise no tool is
	// read-only, and a call whose outcome is unknown is not made again.
	TrustReadOnly bool

	// Timeout bounds one call, waiting for its turn included; 0 is
	// DefaultTimeout.
	Timeout time.Duration
	// ConnectTimeout bounds starting and listing; 0 is DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// MaxOutput is how many bytes of a result are kept; see tool.Tool.
	MaxOutput int
	// Parallel bounds the calls at once; 0 is DefaultParallel.
	Parallel int
}

// check reports what cannot be used.
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

// approval is the policy for one tool.
func (s *Server) approval(name string) tool.Approval {
	if a, ok := s.Approve[name]; ok {
		return a
	}
	return s.Approve["*"]
}

// FlowName is a tool's name in flows: "mcp:server/tool".
func FlowName(server, name string) string { return "mcp:" + server + "/" + name }

// ModelName is a tool's name as models see it: mcp__server__tool, the same every
// time. Where that is longer than 64 bytes, or the server's name for it holds
// what models cannot call, it is shortened and cleaned and ends in a digest of
// the whole.
func ModelName(server, name string) string {
	wire := "mcp__" + server + "__" + name
	if tool.ValidName(wire) {
		return wire
	}
	sum := sha256.Sum256([]byte(wire))
	clean := strings.Map(func(r rune) rune {
		if tool.ValidName(string(r)) {
			return r
		}
		return '_'
	}, wire)
	return clean[:min(len(clean), 55)] + "_" + hex.EncodeToString(sum[:4])
}
