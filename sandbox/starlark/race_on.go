//go:build race

package starlark

// raceEnabled: the program was built with the race detector, so its child needs many times the memory that the kernel
// would allow.
const raceEnabled = true
