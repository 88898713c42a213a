//go:build !race

package starlark

const raced = false
