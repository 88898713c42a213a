// Package structured parses structured answers: the one value that a model was asked
// for, from the text that it wrote. Models add prose, fences and reasoning around
// JSON, and write categories in another case. The parsers accept every answer with one
// clear meaning and refuse all others, with an error that tells the model what to
// change.
//
// It must not know providers, nodes, or what the value is for.
package structured
