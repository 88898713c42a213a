// Package starlark runs code in Starlark, a small dialect of Python without files,
// network and clock. A child process interprets the code, because the interpreter can
// count steps but not memory; the child is ended when it exceeds a limit.
//
// The code receives context, inputs, files (the contents of each file by name, as
// text, or as bytes if it is not UTF-8), the modules json and math, and print.
// Statements at the top level, while, set and reassignment are available. Recursion,
// import, try and f-strings are not.
//
// It must not know flows, nodes or runs. No other package may import go.starlark.net.
package starlark
