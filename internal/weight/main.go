// Command weight builds the weir binary as it is released and prints what it
// weighs: bytes, packages, and the processor time and resident memory of a start
// and of a small run. It exits with an error past the bounds on the size of the binary
// and on what the initialization of packages allocates; times are only printed, since they
// depend on the machine and its load.
//
// It must not know what the binary does beyond two of its commands.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

const (
	// maxBytes bounds the stripped binary.
	maxBytes = 50_000_000
	// repetitions is how often a command is measured; the median counts.
	repetitions = 15
)

// smallFlow is one node without a model.
const smallFlow = `weir: 1
name: small
nodes:
  words: {type: manualInput, with: {text: Hello}}
outputs: {words: "{{ words.text }}"}
`

// templateMethodCaller is linked where templates are reachable. They call methods by
// names that the linker cannot know, so it then keeps every exported method of
// every type.
const templateMethodCaller = "text/template.(*state).evalField"

func main() {
	if err := measureBinary(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "weight:", err)
		os.Exit(1)
	}
}

func measureBinary(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "weir-weight")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	binary := filepath.Join(dir, "weir")
	if err := build(ctx, binary); err != nil {
		return err
	}
	// First, while this process is small: the system counts its memory to what it
	// starts.
	if err := measure(ctx, out, dir, binary); err != nil {
		return err
	}
	inits, err := measureInit(ctx, binary)
	if err != nil {
		return err
	}
	line, initErr := checkInit(inits)
	fmt.Fprintln(out, line)
	code, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	packages, err := exec.CommandContext(ctx, "go", "list", "-deps", "./cmd/weir").Output()
	if err != nil {
		return fmt.Errorf("list packages: %w", err)
	}
	fmt.Fprintf(out, "binary, stripped  %.1f MB (at most %d)\n", float64(len(code))/1e6, maxBytes/1_000_000)
	fmt.Fprintf(out, "packages          %d\n", bytes.Count(packages, []byte("\n")))
	fmt.Fprintf(out, "unused methods    %s\n", methodPruning(code))
	if len(code) > maxBytes {
		return errors.Join(initErr, fmt.Errorf("the stripped binary has %d bytes, %d more than it may", len(code), len(code)-maxBytes))
	}
	return initErr
}

func methodPruning(code []byte) string {
	if bytes.Contains(code, []byte(templateMethodCaller)) {
		return "kept: text/template is reachable"
	}
	return "removed by the linker"
}

func build(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", to, "./cmd/weir") //nolint:gosec // a folder of ours
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

// measure prints what a start and a small run take.
func measure(ctx context.Context, out io.Writer, dir, binary string) error {
	flow := filepath.Join(dir, "small.yaml")
	if err := os.WriteFile(flow, []byte(smallFlow), 0o600); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		args []string
	}{{"weir version", []string{"version"}}, {"weir run", []string{"run", flow}}} {
		var times []time.Duration
		var memory []int64
		for range repetitions {
			cmd := exec.CommandContext(ctx, binary, c.args...) //nolint:gosec // the binary that was just built
			cmd.Dir = dir
			if said, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", c.name, err, said)
			}
			times = append(times, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			memory = append(memory, resident(cmd.ProcessState))
		}
		fmt.Fprintf(out, "%-17s %.1f ms of processor time, %.1f MB resident (medians of %d)\n",
			c.name, float64(median(times))/float64(time.Millisecond), float64(median(memory))/1e6, repetitions)
	}
	fmt.Fprintf(out, "machine           %s, %d processors, %s\n", runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	return nil
}

func median[T int64 | time.Duration](of []T) T {
	slices.Sort(of)
	return of[len(of)/2]
}
