package starlark

// Forgo is what the child does before it runs code.
func Forgo() { forgo() }
