package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// Key says where a key is. It does not hold the key: whatever prints, logs or
// marshals one shows where it is and no more.
type Key struct {
	Env  string `json:"env"`  // the name of an environment variable
	File string `json:"file"` // a file with the key and nothing else

	// assumed: no configuration names the variable; it is where the vendor's key usually is.
	assumed bool
	getenv  func(string) (string, bool)
}

// ErrNoKey: the environment variable or file that a key is in is not there or
// empty.
var ErrNoKey = errors.New("no key")

// Optional reports whether a server other than the vendor's may do without the
// key: no setting names it.
func (k Key) Optional() bool { return k.assumed }

// Set reports whether the key is said to be somewhere.
func (k Key) Set() bool { return k.Env != "" || k.File != "" }

// Value reads the key: "" where it is not Set, ErrNoKey where it is not there.
// White space around it does not belong to it. The error never shows it.
func (k Key) Value() (string, error) {
	switch {
	case k.Env != "":
		get := k.getenv
		if get == nil {
			get = os.LookupEnv
		}
		v, _ := get(k.Env)
		if v = strings.TrimSpace(v); v == "" {
			return "", fmt.Errorf("%w: the environment variable %s is not set", ErrNoKey, k.Env)
		}
		return v, nil
	case k.File != "":
		b, err := os.ReadFile(k.File)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoKey, err)
		}
		v := strings.TrimSpace(string(b))
		switch {
		case v == "":
			return "", fmt.Errorf("%w: the file %s is empty", ErrNoKey, k.File)
		case strings.ContainsAny(v, "\r\n"):
			return "", fmt.Errorf("%w: the file %s holds more than one line; it is to hold the key and nothing else", ErrNoKey, k.File)
		}
		return v, nil
	default:
		return "", nil
	}
}

// String says where the key is.
func (k Key) String() string {
	switch {
	case k.Env != "":
		return "key in " + k.Env
	case k.File != "":
		return "key in the file " + k.File
	default:
		return "without a key"
	}
}

// GoString is String.
func (k Key) GoString() string { return k.String() }

// MarshalText is String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// LogValue is String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Text is a text that may be a secret: it is given, or its key is.
type Text struct {
	Key
	Plain string
}

// Value returns the text, read where it is a key's.
func (t Text) Value() (string, error) {
	if t.Set() {
		return t.Key.Value()
	}
	return t.Plain, nil
}

// String says where the text is; one that is given is not shown either, since
// nothing says that it is no secret.
func (t Text) String() string {
	if t.Set() {
		return t.Key.String()
	}
	return "a text of the configuration"
}

// GoString is String.
func (t Text) GoString() string { return t.String() }

// Format is String, for every verb.
func (t Text) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// MarshalText is String.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue is String.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }
