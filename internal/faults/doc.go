// Package faults holds a list of deliberate faults: small changes of the source,
// each of which breaks one promise. Its test applies them one by one and checks that
// the tests of the product fail. A fault that no test notices has survived.
//
// The package must not know how the code that it breaks works: a fault is a file, a
// text in it and another text.
package faults
