// Package session runs conversations: sessions, in which each message starts a run of a
// flow (a round) or answers the question of the round that waits.
//
// A message is stored in the session's queue before Send returns. A driver in one of the
// processes takes the first message and starts its round; processes coordinate only
// through the store, in which one round at a time holds the session. Start with
// Manager.Open and Session.Send.
//
// It must not know the API that offers it, how nodes are executed, or which store and
// models are used.
package session
