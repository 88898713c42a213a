// Package token counts what a model is sent, before it is sent: exactly for
// OpenAI's encodings, by an estimate for other vendors.
//
// It must not know models, prices, windows or views: it is told the encoding
// and the vendor, and returns numbers.
package token
