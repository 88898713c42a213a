// Package agui lets clients of AG-UI talk to flows: a thread is a session, a run of the
// protocol is a round or the answers to one, and the questions of a flow are interrupts.
//
// It is thin over the server's own operations, and must not know how runs are executed or
// how their record is read.
package agui
