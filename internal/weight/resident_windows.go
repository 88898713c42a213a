package main

import "os"

// resident returns 0: the system does not report it for a process that has ended.
func resident(*os.ProcessState) int64 { return 0 }
