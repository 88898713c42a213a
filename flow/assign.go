package flow

// Assignable reports whether an output of type from may be connected to an input of type
// to. Equal types may; any may be connected to and from every type, and is checked when the
// value arrives. Beyond that there are only these coercions:
//
//	from       to         the value becomes
//	text       message    a user message with that text
//	message    text       the message's text
//	message    messages   a list of that one message
//	message    object     the message's JSON
//	messages   list       the messages' JSON
//	number     text       the number as JSON writes it
//	bool       text       "true" or "false"
//	file       object     the file's JSON
//
// A context can be connected only to a context, and tools only to tools.
func Assignable(from, to PortType) bool {
	if from == to || from == TypeAny || to == TypeAny {
		return true
	}
	switch from {
	case TypeText:
		return to == TypeMessage
	case TypeMessage:
		return to == TypeText || to == TypeMessages || to == TypeObject
	case TypeMessages:
		return to == TypeList
	case TypeNumber, TypeBool:
		return to == TypeText
	case TypeFile:
		return to == TypeObject
	default:
		return false
	}
}

// portTypes lists the port types by their names in files.
func portTypes() []string {
	return []string{
		string(TypeText), string(TypeNumber), string(TypeBool), string(TypeObject), string(TypeList),
		string(TypeMessage), string(TypeMessages), string(TypeContext), string(TypeTools), string(TypeFile),
		string(TypeAny),
	}
}

// isOf reports whether a literal is of the port type as it is: readers of an output get it without a conversion.
func isOf(v any, t PortType) bool {
	_, text := v.(string)
	_, object := v.(map[string]any)
	return fits(v, t) && (t != TypeText || text) && (t != TypeMessage || object)
}

// fits reports whether a literal is valid for an input of the port type, if need be after a conversion.
func fits(v any, t PortType) bool {
	switch t {
	case TypeAny:
		return true
	case TypeText:
		switch v.(type) {
		case string, bool, int64, float64:
			return true
		}
		return false
	case TypeMessage:
		switch v.(type) {
		case string, map[string]any:
			return true
		}
		return false
	case TypeNumber:
		switch v.(type) {
		case int64, float64:
			return true
		}
		return false
	case TypeBool:
		_, ok := v.(bool)
		return ok
	case TypeObject, TypeFile:
		_, ok := v.(map[string]any)
		return ok
	case TypeList, TypeMessages:
		_, ok := v.([]any)
		return ok
	default: // a context and tools arrive only along edges
		return false
	}
}
