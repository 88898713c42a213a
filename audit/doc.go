// Package audit verifies, exports and imports the record of runs.
//
// Verify checks the chain of every run against its commits, and against the other rows
// of the store. WriteExport writes one run, with everything that is needed to read and
// verify it, as a self-contained text. ReadExport and Import read it back. No function
// needs the node types, models or tools of the runs, and none executes anything. The
// package must not know what executed a run.
package audit
