// Package structured reads structured answers: the one value that a model was
// asked for, out of the text that it wrote. Models put prose, fences and their
// reasoning around JSON and write categories in other letters. The readers accept
// what has one meaning and refuse everything else, with an error that tells the
// model what to change.
//
// It must not know providers, nodes, or what the value is for.
package structured
