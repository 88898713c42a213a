// Package proof tests the product as a whole on recorded conversations: every request
// is valid for its vendor, within its budget, and reproducible; requests repeat the
// prefix that the vendor has cached; and a flow gives the same history through every
// vendor's API.
//
// It contains only tests. No package may import it, and it must not know how the product is
// built inside.
package proof
