// Package weirkit has what the tests of several packages share: models that answer by
// rule, flows, and functions that open a Weir, start runs and wait for them. Each
// function fails the test that calls it when something goes wrong.
//
// It must not be imported by anything but tests, and must not know what they assert.
package weirkit
