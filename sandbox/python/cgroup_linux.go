//go:build linux && (amd64 || arm64)

package python

// group is the cgroup of a job.
type group struct{}

// newGroup puts the process into a cgroup of its own, where one can be made; nil
// where none can.
func (p *plan) newGroup(int) (*group, error) { return nil, nil }
