// Package proof holds what is shown of the product as a whole on real
// conversations: that every request which can come of them is one its vendor
// takes, within its budget, and the same each time; that requests repeat what
// the vendor has cached; that a flow gives the same history by every wire.
//
// It has tests alone and must not be known by anything.
package proof
