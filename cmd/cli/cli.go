// Package cli is the command line of weir, for the binaries that have it: weir and weir-temporal.
//
// It contains flags, wiring and terminal output. It must not make decisions about
// runs: package weir does, so a program can do everything that this command can.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/sandbox"
)

// Main carries out the command line of the process and exits.
func Main(o Options) {
	self := sandbox.RunChildRole(app.ChildRoles()...)
	ctx, stop := interruptible(context.Background())
	mark := newColourMark()
	p := &cli{terminal: terminal{in: os.Stdin, out: filterTerminal(os.Stdout, mark), err: filterTerminal(os.Stderr, mark)}, env: os.LookupEnv, sandboxes: self, options: o}
	code := p.command(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// terminal is where a command reads and writes.
type terminal struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// errSignal is the cause of a context that a signal has ended.
type errSignal struct{ signal syscall.Signal }

// Error names the signal.
func (e *errSignal) Error() string { return e.signal.String() }

// code is the conventional exit code of a process that a signal ended.
func (e *errSignal) code() int { return 128 + int(e.signal) }

// interruptible returns a context that the first SIGINT or SIGTERM ends, so
// that runs are left resumable. The second ends the process at once.
func interruptible(parent context.Context) (context.Context, func()) {
	a := &interruptHandler{}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, interruptHandlerKey{}, a))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		stopping := false
		for s := range signals {
			if s == os.Interrupt && a.handle() {
				continue
			}
			e := &errSignal{syscall.SIGINT}
			if n, ok := s.(syscall.Signal); ok {
				e.signal = n
			}
			if stopping || a.blocked.Load() > 0 {
				fmt.Fprintln(os.Stderr, "weir: stopped at once")
				os.Exit(e.code())
			}
			stopping = true
			cancel(e)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// interruptHandler receives Ctrl-C in place of the whole command.
type interruptHandler struct {
	handler atomic.Pointer[func()]
	blocked atomic.Int32 // reads in progress that only the end of the process interrupts
}

// atOnce makes the first signal end the process, until the returned function is called.
func (a *interruptHandler) atOnce() (done func()) {
	if a == nil {
		return func() {}
	}
	a.blocked.Add(1)
	return func() { a.blocked.Add(-1) }
}

type interruptHandlerKey struct{}

// handle notifies the handler of Ctrl-C; false if there is none.
func (a *interruptHandler) handle() bool {
	handler := a.handler.Load()
	if handler == nil {
		return false
	}
	(*handler)()
	return true
}

// onInterrupt calls handler at each Ctrl-C until the returned function is called.
func onInterrupt(ctx context.Context, handler func()) (off func()) {
	a, ok := ctx.Value(interruptHandlerKey{}).(*interruptHandler)
	if !ok {
		return func() {}
	}
	a.handler.Store(&handler)
	return func() { a.handler.Store(nil) }
}

// command carries out one command line and returns the exit code.
func command(ctx context.Context, args []string, t terminal) int {
	return (&cli{terminal: t, env: os.LookupEnv}).command(ctx, args)
}

// command carries out one command line and returns the exit code.
func (p *cli) command(ctx context.Context, args []string) int {
	p.interrupts, _ = ctx.Value(interruptHandlerKey{}).(*interruptHandler)
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !p.started { // cobra's own: a command that is not there, an argument
		err = &usageError{Err: suggestCommand(root, err)}
	}
	if done, ok := errors.AsType[*exitError](err); ok {
		return done.code
	}
	return p.printError(ctx, err)
}
