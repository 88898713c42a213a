// Package guard calls functions from outside (node types, tools, model providers) so
// that none of them ends the process: a panic, runtime.Goexit, and an error with
// methods that panic or never return become plain errors.
//
// It must not know what the functions are for. It cannot protect against a stack
// overflow, a fatal error of the runtime, or a deadlock.
package guard

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"unicode/utf8"
)

// ErrExited is the error of a function that ended its goroutine.
var ErrExited = errors.New("it ended its goroutine with runtime.Goexit and did not return")

// Panic is the error of a function that panicked.
type Panic struct {
	Text  string // what it panicked with
	Stack []byte
}

// Error implements error.
func (p *Panic) Error() string { return "it panicked: " + p.Text }

// Call calls f on a goroutine of its own and waits for it. The error is f's, a *Panic
// or ErrExited.
func Call(f func() error) error {
	done := make(chan error, 1)
	Start(f, func(err error) { done <- err })
	return <-done
}

// Catch calls f on the caller's goroutine. The error is f's or a *Panic. A function that calls
// runtime.Goexit ends the caller: Catch is for functions that call foreign code with Call or Start only.
func Catch(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = Recovered(p)
		}
	}()
	return f()
}

// Start calls f on a goroutine of its own, and then report on the same goroutine with the
// error of Call. The caller need not wait.
func Start(f func() error, report func(error)) {
	go func() {
		var err error
		returned := false
		defer func() {
			switch p := recover(); {
			case p != nil:
				err = Recovered(p)
			case !returned:
				err = ErrExited
			}
			report(err)
		}()
		err = f()
		returned = true
	}()
}

// Recovered returns the error for what recover returned, which is not nil.
func Recovered(p any) *Panic { return &Panic{Text: textOf(p), Stack: debug.Stack()} }

// textOf describes a value whose methods may panic and which may hold itself.
func textOf(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("a value of type %T that cannot be shown", p)
		}
	}()
	switch t := p.(type) {
	case error:
		return Text(t)
	case fmt.Stringer:
		return boundText(t.String())
	}
	switch reflect.ValueOf(p).Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Struct, reflect.Pointer, reflect.Interface:
		return fmt.Sprintf("a value of type %T", p)
	default:
		return boundText(fmt.Sprint(p))
	}
}

// maxText bounds the text of an error in bytes, and maxWrapped how many errors an
// error is followed down to.
const (
	maxText    = 64 << 10
	maxWrapped = 100
)

// Text returns the text of an error, made valid and bounded. An error whose Error method
// panics is described by its type.
func Text(err error) (text string) {
	if err == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("an error of type %T, whose Error method panics", err)
		}
	}()
	return boundText(err.Error())
}

func boundText(s string) string {
	if len(s) > maxText {
		cut := maxText
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = fmt.Sprintf("%s ... (%d bytes in all)", s[:cut], len(s))
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Chain lists an error and those that it wraps, nearest first, without nil pointers.
// It ends where one cannot be unwrapped, and with chains that do not end.
func Chain(err error) []error {
	if isNil(err) {
		return nil
	}
	list := []error{err}
	for i := 0; i < len(list) && len(list) < maxWrapped; i++ {
		list = append(list, unwrap(list[i])...)
	}
	return list
}

func unwrap(err error) (out []error) {
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	switch u := err.(type) { //nolint:errorlint // this is what unwraps
	case interface{ Unwrap() error }:
		if e := u.Unwrap(); !isNil(e) {
			out = append(out, e)
		}
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			if !isNil(e) {
				out = append(out, e)
			}
		}
	}
	return out
}

// isNil reports whether there is no error, or a pointer to none.
func isNil(err error) bool {
	if err == nil {
		return true
	}
	v := reflect.ValueOf(err)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Find returns the first of the chain that is a T.
func Find[T error](err error) (found T, ok bool) {
	for _, e := range Chain(err) {
		if t, is := e.(T); is { //nolint:errorlint // the chain is walked here
			return t, true
		}
	}
	return found, false
}

// Unreadable reports whether an error is a nil pointer, cannot be shown, or wraps
// without end.
func Unreadable(err error) (is bool) {
	if err == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			is = true
		}
	}()
	_ = err.Error()
	return isNil(err) || len(Chain(err)) >= maxWrapped
}
