package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what the initialization of all packages may allocate. These are counts, which
// do not depend on the load of the machine; every command pays for them. Where a bound is
// exceeded, create the table on first use (sync.OnceValue) or find another dependency.
const (
	maxInitBytes  = 3_100_000 // huma has 0.18 MB of it, jsonschema 1.7 MB
	maxInitAllocs = 30_000
)

// packageInit is what the initialization of one package allocates.
type packageInit struct {
	name          string
	bytes, allocs int
}

// measureInit runs the binary with a trace of package initialization.
func measureInit(ctx context.Context, binary string) ([]packageInit, error) {
	cmd := exec.CommandContext(ctx, binary, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("trace initialization: %w\n%s", err, trace.String())
	}
	list := parseInitTrace(trace.String())
	if len(list) == 0 {
		return nil, fmt.Errorf("trace initialization: no package in the trace:\n%s", trace.String())
	}
	return list, nil
}

// parseInitTrace reads the lines of GODEBUG=inittrace=1, such as
// "init os @0.1 ms, 0.05 ms clock, 432 bytes, 12 allocs". The largest packages are first.
func parseInitTrace(trace string) (list []packageInit) {
	line := regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, (\d+) allocs$`)
	for _, m := range line.FindAllStringSubmatch(trace, -1) {
		p := packageInit{name: m[1]}
		p.bytes, _ = strconv.Atoi(m[2]) // digits, by the pattern
		p.allocs, _ = strconv.Atoi(m[3])
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b packageInit) int { return cmp.Or(b.bytes-a.bytes, cmp.Compare(a.name, b.name)) })
	return list
}

// checkInit returns one line for people, and an error past a bound that names the largest
// packages.
func checkInit(list []packageInit) (string, error) {
	var all packageInit
	for _, p := range list {
		all.bytes += p.bytes
		all.allocs += p.allocs
	}
	line := fmt.Sprintf("initialization    %.1f MB, %d allocations (at most %.1f, %d)",
		float64(all.bytes)/1e6, all.allocs, float64(maxInitBytes)/1e6, maxInitAllocs)
	if all.bytes <= maxInitBytes && all.allocs <= maxInitAllocs {
		return line, nil
	}
	var largest strings.Builder
	for _, p := range list[:min(len(list), 5)] {
		fmt.Fprintf(&largest, "\n  %d bytes, %d allocations: %s", p.bytes, p.allocs, p.name)
	}
	return line, fmt.Errorf("package initialization allocates %d bytes in %d allocations, more than %d in %d; the largest packages are%s",
		all.bytes, all.allocs, maxInitBytes, maxInitAllocs, largest.String())
}
