package engine

import "strings"

// SplitEffectKey returns the path of the node and the name with the ordinal of an effect's
// key PATH/NAME#ORDINAL. A key without a slash belongs to no node: its path is "".
func SplitEffectKey(key string) (path, name string) {
	i := strings.LastIndexByte(key, '/')
	return key[:max(i, 0)], key[i+1:]
}

// SplitInterruptID returns the path of the node and the name with the ordinal of an
// interrupt's id PATH:NAME#ORDINAL. The id of the timer of a retry is the path of its node;
// its name is "".
func SplitInterruptID(id string) (path, name string) {
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		return id[:i], id[i+1:]
	}
	return id, ""
}

// effectNode returns the path of the node in an effect's key.
func effectNode(key string) string {
	path, _ := SplitEffectKey(key)
	return path
}

// interruptNode returns the path of the node in an interrupt's id.
func interruptNode(id string) string {
	path, _ := SplitInterruptID(id)
	return path
}
