// Package e2b runs Python in cloud sandboxes of E2B, or of a server with its API. Each job has its own sandbox
// without internet access. The sandbox is deleted when the job ends, so no job finds data of another. The job and its
// declared files are uploaded. A separate process in the sandbox runs the code, so that the end of the code is not
// the end of the sandbox's kernel. A sandbox that was not deleted ends by itself one minute after the job's limit. It
// must not know flows, nodes or runs.
package e2b
