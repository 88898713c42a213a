package app

import (
	"slices"

	"github.com/weir-run/weir"
	"github.com/weir-run/weir/memory"
	memstore "github.com/weir-run/weir/store/memory"
	"github.com/weir-run/weir/tool"
	memorytool "github.com/weir-run/weir/tool/memory"
)

// memoryTools returns the tools of long-term memory over a store, nil if they are not
// configured.
func (b *Toolbox) memoryTools(store memory.Store) ([]*tool.Tool, error) {
	c := b.memory
	if !c.Offered {
		return nil, nil
	}
	return memorytool.Tools(store, memorytool.Options{Namespace: c.Namespace, MaxItems: c.MaxItems, Approve: tool.Approval(c.Approve)})
}

// addMemoryTools adds the memory tools. They need the open store.
func (a *App) addMemoryTools(o *weir.Options) error {
	store := a.Store.Capabilities().Memory
	if store == nil {
		return nil
	}
	tools, err := a.tools.memoryTools(store)
	o.Tools = slices.Concat(o.Tools, tools)
	return err
}

// listMemory describes the memory tools.
func (b *Toolbox) listMemory() []ToolReport {
	tools, err := b.memoryTools(memstore.New())
	if err != nil { // reported by NewToolbox
		return nil
	}
	source := "memory of " + b.memory.Namespace
	if b.memory.Namespace == "" {
		source = "memory of each flow"
	}
	var list []ToolReport
	for _, t := range tools {
		list = append(list, toolReportOf(t, source, ToolConfigured))
	}
	return list
}
