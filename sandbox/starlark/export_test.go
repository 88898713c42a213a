package starlark

// Raced says how the child was built.
const Raced = raced
