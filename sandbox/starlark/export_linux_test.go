package starlark

// DropSyscalls is what the child does before it runs code.
func DropSyscalls() { dropSyscalls() }
