// Package server offers flows, runs and sessions over HTTP: the API below /v1, streams of
// events, metrics, and the description of the API. New makes a Server of an open app.App;
// Server.Serve answers requests until it is drained.
//
// It must not decide what a command does or how a record is read: package weir and history
// do. It knows no flags and no terminal. Every route has a scope and answers only for
// objects of the caller's user.
package server
