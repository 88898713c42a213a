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

// roleName is the child's.
const roleName = "starlark"

// reportFD is the descriptor that the child's report goes to.
const reportFD = 3

// exitMemory is the child's exit code where it saw itself past its memory.
const exitMemory = 3

// maxStack bounds the interpreter's own stack, in bytes: it goes as deep as
// values and code nest.
const maxStack = 16 << 20

// Role is what a program must offer to sandbox.Begin for New to work.
func Role() sandbox.ChildRole { return sandbox.ChildRole{Name: roleName, Main: childMain} }

// childMain reads a request from standard input and writes its report to descriptor
// 3; what the code prints goes to standard output.
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
		if x := recover(); x != nil { // the interpreter's fault, not the program's
			rep = &report{Kind: kindFailed, Message: fmt.Sprint("the interpreter failed: ", x)}
		}
	}()
	if r.Check {
		return check(r)
	}
	return execute(r, func(line string) { _, _ = io.WriteString(stdout, line+"\n") })
}

// limitProcess takes from the process what code could take too much of. The
// interpreter's values are collected early, so that what it holds is what the
// code holds. The channel is closed when that is too much.
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
