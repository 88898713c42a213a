// Package structured parses structured answers of models: it extracts the one requested value from the text. Models
// add prose, code fences and reasoning around JSON, and write categories in another case. The parsers accept every
// answer with one clear meaning and refuse all others, with an error that says what the model must change. It must not
// know providers, nodes, or the purpose of the value.
package structured
