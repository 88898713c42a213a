// Package token counts the tokens of a request before it is sent: exactly for OpenAI's
// encodings, as an estimate for other vendors.
//
// It must not know models, prices, windows or views: it receives the encoding and the
// vendor, and returns numbers.
package token
