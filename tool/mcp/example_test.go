package mcptool_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-run/weir/tool"
	mcptool "github.com/weir-run/weir/tool/mcp"
)

// The tools of a server are offered once a person has read and accepted what
// they say they do.
func ExampleClient_Tools() {
	files, err := mcptool.NewClient(mcptool.Server{
		Name:    "files",
		Command: []string{"mcp-files", "--root", "."},
		Env:     map[string]string{"TOKEN": "{{ secrets.FILES }}"},
		Tools:   []string{"list", "read"},
		Approve: map[string]tool.Approval{"read": tool.ApproveOnce},
	}, mcptool.Options{Pins: mcptool.NewLockFile("weir.pins.json")})
	if err != nil {
		panic(err)
	}
	defer func() { _ = files.Close() }()

	tools, err := files.Tools(context.Background())
	if refused, ok := errors.AsType[*mcptool.RefusedError](err); ok {
		for _, r := range refused.Refusals {
			fmt.Println(r) // show r.Now to a person, then: files.Accept(r)
		}
	}
	fmt.Println(len(tools), "tools can be used") // there is no such server here
	// Output: 0 tools can be used
}
