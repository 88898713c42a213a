package server

import (
	"github.com/weir-run/weir/convo"
	"github.com/weir-run/weir/tool"
)

// CheckClientTools checks the tools that a client offers to models; place is the path of their list in the body of the request.
func CheckClientTools(place string, tools *convo.ClientTools) error {
	if tools == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range tools.List {
		at, name := place+"."+itoa(int64(i)), tools.List[i].Name
		if !tool.ValidName(name) {
			return InvalidRequest(at, "the name of a tool has 1 to 64 letters, digits, - and _")
		}
		if seen[name] {
			return InvalidRequest(at, "there are two tools "+name)
		}
		seen[name] = true
	}
	return nil
}
