package starlark

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/weir-run/weir/sandbox"
)

// roleName is the name of the child's role.
const roleName = "starlark"

// reportFD is the descriptor to which the child writes its report.
const reportFD = 3

// exitMemory is the child's exit code when it detected that it exceeds its memory limit.
const exitMemory = 3

// maxStack limits the interpreter's own stack, in bytes; its depth follows the nesting of values and code.
const maxStack = 16 << 20

// Role must be passed to sandbox.RunChildRole by a program that calls New.
func Role() sandbox.ChildRole { return sandbox.ChildRole{Name: roleName, Main: childMain} }

// childMain reads a request from standard input and writes its report to descriptor 3; the output of the code goes to
// standard output.
func childMain([]string) int {
	out := os.NewFile(reportFD, "report")
	var r request
	if err := json.NewDecoder(bufio.NewReader(os.Stdin)).Decode(&r); err != nil {
		fmt.Fprintf(os.Stderr, "read the job: %v\n", err)
		return 2
	}
	over := limitProcess(r.Memory)
	dropSyscalls()
	done := make(chan *report, 1)
	go func() { done <- handleRequest(&r, os.Stdout) }()
	select {
	case <-over:
		return exitMemory
	case rep := <-done:
		if err := json.NewEncoder(out).Encode(rep); err != nil {
			fmt.Fprintf(os.Stderr, "report: %v\n", err)
			return 2
		}
		return 0
	}
}

func handleRequest(r *request, stdout io.Writer) (rep *report) {
	defer func() {
		if x := recover(); x != nil { // the fault is the interpreter's, not the code's
			rep = &report{Kind: kindFailed, Message: fmt.Sprint("the interpreter failed: ", x)}
		}
	}()
	if r.Check {
		return check(r)
	}
	return execute(r, func(line string) { _, _ = io.WriteString(stdout, line+"\n") })
}

// limitProcess sets limits for the process. Garbage is collected early, so that the process's memory is close to that
// of the code's values. The channel is closed when the memory limit is exceeded.
func limitProcess(memory int64) <-chan struct{} {
	over := make(chan struct{})
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(memory * 3 / 4)
	if !raceEnabled {
		limitMemory(memory)
	}
	go watchMemory(memory, func() { close(over) })
	return over
}
