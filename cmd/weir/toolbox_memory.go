package main

import (
	"slices"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/memory"
	memstore "github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	memorytool "github.com/weir-run/weir/tool/memory"
)

// memoryTools are the tools of long-term memory over a store, nil where they are
// not configured.
func (b *toolbox) memoryTools(store memory.Store) ([]*tool.Tool, error) {
	c := b.memory
	if !c.Offered {
		return nil, nil
	}
	return memorytool.Tools(store, memorytool.Options{Namespace: c.Namespace, MaxItems: c.MaxItems, Approve: tool.Approval(c.Approve)})
}

// addMemoryTools offers the memory tools, now that there is a store.
func (d *application) addMemoryTools(o *weir.Options) error {
	store, ok := d.store.(memory.Store)
	if !ok {
		return nil
	}
	tools, err := d.tools.memoryTools(store)
	o.Tools = slices.Concat(o.Tools, tools)
	return err
}

// listMemory are the memory tools as `weir tools` shows them.
func (b *toolbox) listMemory() []toolReport {
	tools, err := b.memoryTools(memstore.New())
	if err != nil { // told when the toolbox was made
		return nil
	}
	source := "memory of " + b.memory.Namespace
	if b.memory.Namespace == "" {
		source = "memory of each flow"
	}
	var list []toolReport
	for _, t := range tools {
		list = append(list, toolReportOf(t, source, stateConfigured))
	}
	return list
}
