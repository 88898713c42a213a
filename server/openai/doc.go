// Package openai lets clients of OpenAI's API use flows: a flow is a model, and a conversation
// is a session.
//
// It is thin over the server's own operations, and must not know how runs are executed or
// how their record is read.
package openai
