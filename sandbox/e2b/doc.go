// Package e2b runs Python in cloud sandboxes of E2B, or of a server that speaks
// its protocol.
//
// Each job has a sandbox of its own, made for it without access to the
// internet and deleted when it ends, however it ends: what one job leaves, no
// other finds. The job and the files it may read are uploaded; inside, a process
// of its own runs the code, so that the code's end is not the kernel's. The
// sandbox ends by itself a minute after the job's limit, should nobody be left
// to delete it.
//
// It must not know flows, nodes or runs.
package e2b
