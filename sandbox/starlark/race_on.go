//go:build race

package starlark

// raceEnabled: the program was built to find data races, and its child takes many
// times the memory that the kernel would allow it.
const raceEnabled = true
