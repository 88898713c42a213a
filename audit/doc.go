// Package audit verifies, exports and imports the record of runs.
//
// Verify checks the chain of every run against the commits it links and against
// what the store keeps beside them. WriteExport writes one run, with everything
// that reading and verifying it needs, as a self-contained text; ReadExport and
// Import read it back. None of them needs the node types, models or tools that the
// runs used, and none runs anything. The package must not know what executed a run.
package audit
