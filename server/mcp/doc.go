// Package mcp offers the flows and runs of a server as tools of the Model Context Protocol.
//
// It is thin over the server's own operations, and must not know how runs are executed or
// how their record is read. The types of the protocol's SDK do not leave it.
package mcp
