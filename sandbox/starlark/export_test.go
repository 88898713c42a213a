package starlark

// RaceEnabled says how the child was built.
const RaceEnabled = raceEnabled
