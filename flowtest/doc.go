// Package flowtest runs tests of flows that are written down in files:
// *.test.yaml says what a flow is given, what the model, the tools, the people
// and some of the nodes say, and what is to come of it. What runs is the library
// itself over a record in memory; waits take no time.
//
// It must not know how runs are driven or kept: it starts them, answers what
// they ask and reads their journal, as any program may.
package flowtest
