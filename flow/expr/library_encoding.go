package expr

import (
	"crypto/md5"  //nolint:gosec // a checksum that other services ask for, documented as such
	"crypto/sha1" //nolint:gosec // RFC 9562 derives UUIDs of version 5 with it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

func encodingLibrary() []cel.EnvOption {
	s, d := cel.StringType, cel.DynType
	opts := []cel.EnvOption{
		global("toJson", "to_json", toJSON, s, d),
		global("toJson", "to_json_indent", toJSON, s, d, cel.IntType),
		global("fromJson", "from_json", fromJSON, d, s),
		global("url.encode", "url_encode", urlEncode, s, s),
		global("url.decode", "url_decode", urlDecode, s, s),
		global("base64.encode", "base64_encode_text", func(a ...ref.Val) ref.Val {
			return types.String(base64.StdEncoding.EncodeToString([]byte(a[0].(types.String))))
		}, s, s),
		global("base64.encodeUrl", "base64_encode_url_text", func(a ...ref.Val) ref.Val {
			return types.String(base64.RawURLEncoding.EncodeToString([]byte(a[0].(types.String))))
		}, s, s),
	}
	for name, digest := range map[string]func([]byte) []byte{
		"sha256": func(b []byte) []byte { d := sha256.Sum256(b); return d[:] },
		"sha512": func(b []byte) []byte { d := sha512.Sum512(b); return d[:] },
		"md5":    func(b []byte) []byte { d := md5.Sum(b); return d[:] }, //nolint:gosec // see the import
	} {
		opts = append(opts,
			global("hash."+name, "hash_"+name, func(a ...ref.Val) ref.Val {
				return types.String(hex.EncodeToString(digest([]byte(a[0].(types.String)))))
			}, s, s),
			global("hash."+name, "hash_"+name+"_bytes", func(a ...ref.Val) ref.Val {
				return types.String(hex.EncodeToString(digest([]byte(a[0].(types.Bytes)))))
			}, s, cel.BytesType))
	}
	return opts
}

func toJSON(a ...ref.Val) ref.Val {
	indent := 0
	if len(a) == 2 {
		n := int64(a[1].(types.Int))
		if n < 0 || n > 8 {
			return types.NewErr("toJson: an indent of %d; expected 0 to 8", n)
		}
		indent = int(n)
	}
	n := nativeConverter{left: maxComparedElements}
	text, err := n.json(a[0], indent)
	if err != nil {
		return types.NewErr("toJson: %v", err)
	}
	return types.String(text)
}

// json returns a value as JSON with sorted keys, over several lines with an indent.
func (n *nativeConverter) json(v ref.Val, indent int) (string, error) {
	if n.left -= weigh(v, n.left+1); n.left < 0 {
		return "", errTooBig
	}
	value, err := n.of(v)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", strings.Repeat(" ", indent))
	if err := enc.Encode(value); err != nil {
		return "", fmt.Errorf("the value cannot be written as JSON: %w", err)
	}
	if b.Len() > MaxResult {
		return "", errTooBig
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

func fromJSON(a ...ref.Val) ref.Val {
	v, err := parseJSON(string(a[0].(types.String)))
	if err != nil {
		return types.NewErr("fromJson: %v", err)
	}
	return adapter{}.NativeToValue(v)
}

func urlEncode(a ...ref.Val) ref.Val {
	return types.String(strings.ReplaceAll(url.QueryEscape(string(a[0].(types.String))), "+", "%20"))
}

func urlDecode(a ...ref.Val) ref.Val {
	text, err := url.QueryUnescape(string(a[0].(types.String)))
	if err != nil {
		return types.NewErr("url.decode: %v", err)
	}
	return types.String(strings.ToValidUTF8(text, "\uFFFD"))
}

// uuidFrom derives a UUID of version 5 (RFC 9562) from a seed and a number or text.
func uuidFrom(seed, n ref.Val) ref.Val {
	s, ok := seed.(types.String)
	if !ok {
		return types.NewErr("uuid cannot be used here")
	}
	switch n.(type) {
	case types.Int, types.String:
	default:
		return undefined("uuid", n)
	}
	h := sha1.Sum(fmt.Appendf(nil, "%s%s/uuid/%T:%v", uuidNamespace, s, n.Value(), n.Value())) //nolint:gosec // see the import
	id := h[:16]
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return types.String(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
}

// uuidNamespace is the namespace of Weir's UUIDs of version 5: 16 bytes.
const uuidNamespace = "\x5b\x1f\x0a\x6e\x93\xc2\x4d\x07\x8e\x55\xd1\x44\x2a\x90\x7b\xe6"
