// Package starlark runs code in Starlark, the small dialect of Python that
// reaches no file, no network and no clock. It is interpreted in a child
// process, since the interpreter counts steps and cannot count memory: what
// takes too much ends with the child.
//
// The code finds context, inputs, files (the contents of each file by its name,
// as text, or as bytes where it is none), the modules json and math, and print.
// Statements may stand at the top, while and set are there, names may be
// assigned again; recursion, import, try and f-strings are not.
//
// It must not know flows, nodes or runs. No other package may import
// go.starlark.net.
package starlark
