// Package builtin contains the node types of Weir, one file per type: its spec (ports,
// settings, docs, examples), its settings struct and its run function.
//
// It must not know how nodes are scheduled, stored or shown: every effect of a type
// goes through node.Ctx. A new type is one new file and one line in Catalogue.
package builtin

import (
	"fmt"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/internal/breaker"
	"github.com/weir-run/weir/node"
)

// toolTypeName is the name of the type whose nodes call a tool themselves.
const toolTypeName = "tool"

// Types lists the types of this package, for a catalogue that adds its own.
func Types() []node.Type {
	breakers := breaker.NewSet()
	list := []node.Type{
		startType(),
		userInputType(),
		manualInputType(),
		sayType(),
		llmRequestType(),
		agentType(),
		categorizerType(),
		extractType(),
		summarizeType(),
		toolsType(),
		semanticToolsType(),
		toolType(),
		rememberType(),
		extractMemoriesType(),
		recallType(),
		forgetType(),
		identifyUserType(),
		newContextType(),
		injectMessagesType(),
		templateType(),
		transformType(),
		actionType(breakers),
		decisionType(breakers),
		switchType(),
		mergeType(),
		httpRequestType(),
		readFileType(),
		approvalGateType(),
		budgetGuardType(),
		errorDetectionType(),
		redactorType(),
		waitType(),
		waitEventType(),
		loopType(),
		forEachType(),
		raceType(),
		flowType(),
		portalInType(),
		portalOutType(),
		cacheType(),
		outputType(),
		failType(),
	}
	for _, t := range list {
		// Tools may be flows of the configuration, whose codes are not known when a flow is loaded.
		if sp := t.Spec(); sp.Codes == nil && sp.Name != toolTypeName {
			sp.Codes = func(map[string]any) []string { return engine.NodeCodes() }
		}
	}
	return list
}

// Catalogue returns the catalogue of the types of this package. It panics where two
// of them share a name, which is an error in this package.
func Catalogue() *node.Catalogue {
	c, err := node.NewCatalogue(Types()...)
	if err != nil {
		panic(fmt.Sprintf("builtin: %v", err))
	}
	return c
}
